"""Everything a run leaves behind, in one folder."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from trainers.common.checkpoint import Checkpoints
from trainers.common.config import ConfigError, TrainConfig, load_config
from trainers.common.execution_log import ExecutionLog, ExecutionLogUnusable
from trainers.common.jsonlines import JsonLines, write_json
from trainers.common.replay import group_by_recv
from trainers.common.sample import Sample

__all__ = ["RunFolder"]

EXECUTIONS = "executions.sqlite"


class RunFolder:
    """A run's files; one process at a time may write them.

    - ``config.toml``: the whole configuration.
    - ``samples.jsonl``: every completion, in the order received: reward, outcome, duration, stamps, response, ``info``
      with the program. It only grows; a resumed run repeats what is recorded after its checkpoint.
    - ``prompts.jsonl``: each prompt once, by ``task`` and ``group``.
    - ``metrics.jsonl``: one line per update.
    - ``executions.sqlite``: every execution, written the moment it ends (:mod:`trainers.common.execution_log`).
    - ``submissions/``: those of executions that were not received yet.
    - ``tensorboard/``: the numbers of ``metrics.jsonl``.
    - ``audit.json``: launched and trained shares by duration decile and by policy version.
    - ``best/``: program and submission of the best valid sample of each task.
    - ``checkpoints/``: the last two, each with a ``policy/`` that loads like any model.
    - ``policy/``, ``evaluation.json``, ``summary.json``: written at the end.

    Args:
        path: An existing run folder; use ``create`` or ``open``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = self._acquire()
        self.samples = JsonLines(path / "samples.jsonl")
        self.prompts = JsonLines(path / "prompts.jsonl")
        self.metrics = JsonLines(path / "metrics.jsonl")
        self.checkpoints = Checkpoints(path / "checkpoints")
        self.executions: ExecutionLog | None = None
        """None until ``open_executions``."""
        self._writer: Any = None

    @staticmethod
    def check_new(path: Path) -> None:
        """Raise ``ConfigError`` where a new run cannot go; a run that never finished a program may be overwritten."""
        samples = path / "samples.jsonl"
        begun = (samples.is_file() and samples.stat().st_size) or _has_executions(path / EXECUTIONS)
        if (path / "config.toml").is_file() and not begun:
            return
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise ConfigError(f"{path} is not empty; choose another --run, or continue it with --resume {path}.")

    @classmethod
    def create(cls, path: Path, config: TrainConfig) -> RunFolder:
        """Make a new run.

        Raises:
            ConfigError: The folder holds something already.
        """
        cls.check_new(path)
        path.mkdir(parents=True, exist_ok=True)
        # The lock comes first, so that a second run of the same name cannot write over the first one's configuration.
        run = cls(path)
        (path / "config.toml").write_text(config.to_toml(), encoding="utf-8")
        return run

    @classmethod
    def open(cls, path: Path) -> tuple[RunFolder, TrainConfig]:
        """Open a run to continue it.

        Raises:
            ConfigError: There is no run, or another process is writing it.
        """
        if not (path / "config.toml").is_file():
            raise ConfigError(f"{path} is not a run folder: it has no config.toml.")
        return cls(path), load_config(path / "config.toml")

    def open_executions(self) -> ExecutionLog:
        """Open the log of executions, which ``close`` closes.

        Raises:
            ExecutionLogUnusable: It is damaged or of another version.
        """
        if self.executions is None:
            origins = (record["info"].get("execution") or {} for record in self.samples.read())
            self.executions = ExecutionLog(self.path / EXECUTIONS, max((o.get("id", 0) for o in origins), default=0))
        return self.executions

    def recorded_groups(self, after: int) -> list[list[Mapping[str, Any]]]:
        """Completions on record from group ``after`` on; a group that a kill has torn is cut from the record."""
        records = self.samples.read()
        groups = group_by_recv(records)
        whole = [record for group in groups for record in group]
        if len(whole) < len(records):
            self.samples.rewrite(whole)
        return [group for group in groups if group[0]["recv"] >= after]

    def cut(self, group: int, update: int) -> None:
        """Take back what a run that no longer repeats itself has on record; it moves to ``lost.jsonl``."""
        records = self.samples.read()
        lost = JsonLines(self.path / "lost.jsonl")
        lost.append(record for record in records if record["recv"] >= group)
        lost.close()
        self.samples.rewrite(record for record in records if record["recv"] < group)
        self.rewind(update)

    def rewind(self, update: int) -> None:
        """Forget the metrics of updates from ``update`` on; they are about to be repeated."""
        self.metrics.rewrite(record for record in self.metrics.read() if record["update"] < update)

    def log(self, metrics: Mapping[str, Any]) -> None:
        """Append the metrics of one update."""
        self.metrics.append([metrics])
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self.path / "tensorboard"), purge_step=int(metrics["update"]))
        for key, value in metrics.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                self._writer.add_scalar(key, value, int(metrics["update"]))
            elif isinstance(value, Mapping):
                for name, number in value.items():
                    if isinstance(number, int | float):
                        self._writer.add_scalar(f"{key}/{name}", number, int(metrics["update"]))
                    elif isinstance(number, list):
                        # By decile of duration, the fastest first.
                        for rank, each in enumerate(number):
                            self._writer.add_scalar(f"{key}_{name}/{rank:02}", each, int(metrics["update"]))
        self._writer.flush()

    def keep_best(self, sample: Sample) -> None:
        """Keep the program, the submission and the record of a task's best sample so far."""
        folder = self.best_folder(sample.task)
        folder.mkdir(parents=True, exist_ok=True)
        # The record goes first and comes back last: whoever reads it finds the files that belong to it.
        for name in ("sample.json", "submission.csv"):
            (folder / name).unlink(missing_ok=True)
        program, submission = str(sample.info.get("program", "")), str(sample.info.get("submission_path", ""))
        (folder / "program.py").write_text(program, encoding="utf-8", errors="replace")
        # The environment's copy ended with its process where a kill came between the sample's record and this.
        own, kept = Path(submission), self.path / "submissions" / f"{sample.ticket}.csv"
        if submission and (own.is_file() or kept.is_file()):
            shutil.copyfile(own if own.is_file() else kept, folder / "submission.csv")
        write_json(
            folder / "sample.json",
            {
                "ticket": sample.ticket,
                "task": sample.task,
                "version": sample.version,
                "score": sample.info.get("score"),
                "reward": sample.reward,
                "duration": sample.duration,
                "seconds": sample.ended,
                "response": sample.generation.text,
            },
        )

    def best_folder(self, task: str) -> Path:
        """Where the best sample of a task is kept."""
        return self.path / "best" / task.replace("/", "_")

    def best(self, task: str) -> dict[str, Any] | None:
        """Record of the best sample of a task."""
        path = self.best_folder(task) / "sample.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def write(self, name: str, document: Any) -> None:
        """Write one JSON document of the run, atomically."""
        write_json(self.path / name, document)

    def sync(self) -> None:
        """Force the records to the disk."""
        if self.executions is not None:
            self.executions.sync()
        for file in (self.samples, self.prompts, self.metrics):
            file.sync()

    def close(self) -> None:
        """Close every file; idempotent."""
        for file in (self.samples, self.prompts, self.metrics):
            file.close()
        if self.executions is not None:
            self.executions.close()
        if self._writer is not None:
            self._writer.close()
        self._lock.close()

    def _acquire(self) -> IO[str]:
        lock = (self.path / ".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise ConfigError(f"Another process is writing the run {self.path}.") from None
        print(os.getpid(), file=lock, flush=True)
        return lock


def _has_executions(path: Path) -> bool:
    """Tell whether a log has anything in it; one that cannot be read may."""
    if not path.is_file():
        return False
    try:
        with ExecutionLog(path) as log:
            return len(log) > 0
    except ExecutionLogUnusable:
        return True
