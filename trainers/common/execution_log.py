"""Every finished execution of a run, written down before anybody acts on it."""

from __future__ import annotations

import json
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from mle_gym.commands.base import UserError
from mle_gym.execution_key import ExecutionKey

__all__ = ["ExecutionLog", "ExecutionLogUnusable", "ExecutionRecord"]

APPLICATION_ID = 0x4D4C4531
"""Marks the file as ours, in SQLite's header."""
VERSION = 1
"""Of the schema."""
_INFRASTRUCTURE = ("infrastructure_error", "cancelled")
_COLUMNS = (
    "ticket, action, task, program, data, limits, seed, instrumenter, "
    "env, attempt, outcome, valid, duration, queued, generated, started, ended, step, crc"
)
_SCHEMA = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
CREATE TABLE executions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    ticket INTEGER,              -- of the run; NULL outside training
    action TEXT NOT NULL,        -- SHA-256 of the response
    task TEXT NOT NULL,          -- with the next five: what the result depends on
    program TEXT NOT NULL,
    data TEXT NOT NULL,
    limits TEXT NOT NULL,
    seed INTEGER NOT NULL,
    instrumenter TEXT NOT NULL,
    env INTEGER NOT NULL,        -- index of the environment
    attempt INTEGER NOT NULL,    -- 1, or more after infrastructure failures
    outcome TEXT NOT NULL,
    valid INTEGER NOT NULL,      -- 0: masked
    duration REAL NOT NULL,      -- seconds of the program
    queued REAL NOT NULL,        -- stamps, seconds since the run's start, over all its restarts
    generated REAL NOT NULL,
    started REAL NOT NULL,
    ended REAL NOT NULL,
    step TEXT NOT NULL,          -- observation, reward, terminated, truncated, info; JSON
    crc INTEGER NOT NULL         -- CRC-32 of step
);
CREATE INDEX by_ticket ON executions (ticket, id) WHERE ticket IS NOT NULL;
CREATE INDEX by_key ON executions (program, task, data, limits, seed, instrumenter, id);
CREATE TRIGGER executions_stay BEFORE UPDATE ON executions
    BEGIN SELECT RAISE(ABORT, 'executions are never changed'); END;
CREATE TRIGGER executions_remain BEFORE DELETE ON executions
    BEGIN SELECT RAISE(ABORT, 'executions are never deleted'); END;
COMMIT;
"""


class ExecutionLogUnusable(UserError):
    """The log is damaged, or of another version; one sentence says which and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRecord:
    """One finished execution."""

    ticket: int | None
    """Ticket of the run; None outside training, as in an evaluation."""
    action: str
    """SHA-256 of the response."""
    key: ExecutionKey
    """What the result depends on; an empty ``data`` says that the environment does not tell, and matches nothing."""
    env: int
    attempt: int
    obs: str
    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]
    queued: float
    """Stamps, seconds since the run's start: response asked for ..."""
    generated: float
    started: float
    ended: float
    id: int = 0
    """Number in the log, from 1."""

    @property
    def outcome(self) -> str:
        """How it ended."""
        return str(self.info.get("outcome", ""))

    @property
    def valid(self) -> bool:
        """False when the infrastructure failed, or the execution was cancelled."""
        return bool(self.info.get("reward_valid", True)) and self.outcome not in _INFRASTRUCTURE

    @property
    def duration(self) -> float:
        """Seconds of the program."""
        return float(self.info.get("duration") or 0.0)


class ExecutionLog:
    """An append-only SQLite database in WAL mode.

    ``append`` returns when the record is in the hands of the operating system: a killed process loses none. A power
    failure may lose those after the last ``sync``. The database itself refuses to change or delete a record. There is
    one writer, the process that holds the run folder's lock, with one connection that its threads take turns at;
    others may read.

    Args:
        path: The file; made when missing.
        after: Records with numbers up to this one are known elsewhere. A log that has fewer was cut; a new one counts
            on from there.

    Raises:
        ExecutionLogUnusable: The file is damaged, cut, or of another version.
    """

    def __init__(self, path: Path, after: int = 0) -> None:
        self.path = path
        self._lock = threading.Lock()
        if not path.exists():
            self._create(after)
        self._check_size()
        self._file: sqlite3.Connection = self._connect(path)
        try:
            self._check(after)
        except sqlite3.Error as error:
            self._file.close()
            raise ExecutionLogUnusable(f"The execution log {path} is damaged ({error}); {self._way_out}") from error
        except ExecutionLogUnusable:
            self._file.close()
            raise

    def append(self, record: ExecutionRecord) -> int:
        """Write a record down and return its number.

        Raises:
            sqlite3.Error: It cannot be written, for example because the disk is full.
        """
        key = record.key
        step = {
            "obs": record.obs,
            "reward": record.reward,
            "terminated": record.terminated,
            "truncated": record.truncated,
            "info": record.info,
        }
        text = json.dumps(_encode(step))
        values = (
            record.ticket,
            record.action,
            *(_text(name) for name in (key.task, key.program, key.data, key.limits)),
            key.seed,
            _text(key.instrumenter),
            record.env,
            record.attempt,
            record.outcome,
            record.valid,
            record.duration,
            record.queued,
            record.generated,
            record.started,
            record.ended,
            text,
            zlib.crc32(text.encode()),
        )
        marks = ", ".join("?" * len(values))
        with self._lock, self._file:
            number = self._file.execute(f"INSERT INTO executions ({_COLUMNS}) VALUES ({marks})", values).lastrowid
        assert number is not None
        return number

    def finished(self, ticket: int, action: str) -> ExecutionRecord | None:
        """The valid execution of this response on this ticket, if there is one."""
        return self._one("ticket = ? AND action = ? AND valid", (ticket, action))

    def cached(self, key: ExecutionKey) -> ExecutionRecord | None:
        """The first valid execution with this key."""
        if not key.data:
            return None
        where = "program = ? AND task = ? AND data = ? AND limits = ? AND seed = ? AND instrumenter = ? AND valid"
        texts = [_text(text) for text in (key.program, key.task, key.data, key.limits)]
        return self._one(where, (*texts, key.seed, _text(key.instrumenter)), "id")

    def read(self) -> Iterator[ExecutionRecord]:
        """Every record, in the order written."""
        yield from self._select("", ())

    @property
    def last_ended(self) -> float:
        """When the last execution ended, seconds since the run's start; 0.0 where there is none."""
        with self._lock:
            return float(self._file.execute("SELECT COALESCE(MAX(ended), 0.0) FROM executions").fetchone()[0])

    def __len__(self) -> int:
        with self._lock:
            return int(self._file.execute("SELECT COUNT(*) FROM executions").fetchone()[0])

    def sync(self) -> None:
        """Force everything to the disk."""
        with self._lock:
            self._file.execute("PRAGMA wal_checkpoint(FULL)")

    def close(self) -> None:
        """Close the file; idempotent."""
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _one(self, where: str, values: tuple[Any, ...], order: str = "id DESC") -> ExecutionRecord | None:
        return next(iter(self._select(f"WHERE {where} ORDER BY {order} LIMIT 1", values)), None)

    def _select(self, which: str, values: tuple[Any, ...]) -> list[ExecutionRecord]:
        try:
            with self._lock:
                rows = self._file.execute(f"SELECT id, {_COLUMNS} FROM executions {which}", values).fetchall()
            return [_record(row) for row in rows]
        except sqlite3.DatabaseError as error:
            raise ExecutionLogUnusable(
                f"The execution log {self.path} is damaged ({error}); {self._way_out}"
            ) from error

    @property
    def _way_out(self) -> str:
        return (
            f"move it and {self.path.name}-wal to another folder and resume again: all that samples.jsonl has is kept, "
            "and what finished after its last line runs again."
        )

    def _create(self, after: int) -> None:
        """Make an empty log under another name first: a file in its place is never half made."""
        new = self.path.with_name(self.path.name + ".new")
        for path in (new, *_beside(new), *_beside(self.path)):
            path.unlink(missing_ok=True)
        file = self._connect(new)
        try:
            file.executescript(_SCHEMA)
            with file:
                file.execute("INSERT INTO sqlite_sequence VALUES ('executions', ?)", (after,))
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            file.close()
        new.replace(self.path)

    @staticmethod
    def _connect(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, timeout=60.0, check_same_thread=False)

    def _check_size(self) -> None:
        """Notice a lost end, which SQLite reads as zeros."""
        if any(path.is_file() and path.stat().st_size for path in _beside(self.path)[:1]):
            return  # The kill was perhaps in the middle of a checkpoint, whose pages are still in the write-ahead log.
        with self.path.open("rb") as file:
            header = file.read(32)
        if len(header) == 32 and not header.startswith(b"SQLite format 3\0"):
            return  # SQLite says it better
        page, pages = int.from_bytes(header[16:18], "big"), int.from_bytes(header[28:32], "big")
        if len(header) < 32 or self.path.stat().st_size < (65536 if page == 1 else page) * pages:
            raise ExecutionLogUnusable(f"The execution log {self.path} was cut: its end is missing; {self._way_out}")

    def _check(self, after: int) -> None:
        file = self._file
        (application,), (version,) = (
            file.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        if application != APPLICATION_ID:
            raise ExecutionLogUnusable(f"{self.path} is not an execution log, or was cut; {self._way_out}")
        if version != VERSION:
            raise ExecutionLogUnusable(
                f"The execution log {self.path} has version {version} and this mle_gym reads version {VERSION}; resume "
                f"with the mle_gym that wrote it, or {self._way_out}"
            )
        if file.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise ExecutionLogUnusable(
                f"The file system of {self.path} cannot hold a write-ahead log; choose a --run on a local disk."
            )
        # With a write-ahead log a commit is not flushed to the disk then, but none ever stands without those before.
        file.execute("PRAGMA synchronous = NORMAL")
        found = [row[0] for row in file.execute("PRAGMA quick_check(1)")]
        if found != ["ok"]:
            detail = " ".join(" ".join(found).split())
            raise ExecutionLogUnusable(f"The execution log {self.path} is damaged ({detail}); {self._way_out}")
        (last,) = file.execute("SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence").fetchone()
        if last < after:
            raise ExecutionLogUnusable(
                f"The execution log {self.path} was cut: it ends at record {last} and samples.jsonl knows record "
                f"{after}; {self._way_out}"
            )


def _beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + end) for end in ("-wal", "-shm")]


def _record(row: tuple[Any, ...]) -> ExecutionRecord:
    number, ticket, action, task, program, data, limits, seed, instrumenter, env, attempt = row[:11]
    queued, generated, started, ended, step, crc = row[14:]
    if zlib.crc32(step.encode()) != crc:
        raise sqlite3.DatabaseError(f"record {number} does not match its checksum")
    return ExecutionRecord(
        id=number,
        ticket=ticket,
        action=action,
        key=ExecutionKey(task, program, data, limits, seed, instrumenter),
        env=env,
        attempt=attempt,
        queued=queued,
        generated=generated,
        started=started,
        ended=ended,
        **_decode(json.loads(step)),
    )


def _text(text: str) -> str:
    """Text that SQLite can hold: no lone surrogates."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _encode(value: Any) -> Any:
    """The value in JSON's types, nan included; arrays say that they are some, what is unknown becomes its text."""
    if isinstance(value, np.ndarray):
        return {"__array__": value.tolist(), "dtype": str(value.dtype)}
    if isinstance(value, np.generic):
        return _encode(value.item())
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_encode(item) for item in value]
    return str(value)


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        if "__array__" in value:
            return np.array(value["__array__"], dtype=value["dtype"])
        return {key: _decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_decode(item) for item in value]
    return value
