"""Reading a run folder, whatever state a run has left it in."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mle_gym.commands.base import UserError

__all__ = ["Best", "RunData", "read_run"]


@dataclass(frozen=True)
class Best:
    """The best valid program of a task."""

    task: str
    program: str
    record: Mapping[str, Any]


@dataclass(frozen=True)
class RunData:
    """What a run has recorded so far."""

    folder: Path
    config: Mapping[str, Any]
    samples: list[dict[str, Any]]
    """Completions in the order received, those of failed infrastructure included."""
    metrics: list[dict[str, Any]]
    """One entry for each update."""
    audit: Mapping[str, Any]
    evaluation: Mapping[str, Any]
    summary: Mapping[str, Any]
    best: list[Best]
    notes: list[str] = field(default_factory=list)
    """One sentence for each thing that is missing or damaged."""

    @property
    def finished(self) -> bool:
        """True when the run came to its end and wrote its summary."""
        return bool(self.summary)


def read_run(folder: Path) -> RunData:
    """Read a run folder.

    A run that was killed has a torn last line, no summary and no evaluation: what is there is read, and ``notes``
    says what is not.

    Raises:
        UserError: There is no such folder, or nothing in it is a run.
    """
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}; give the run folder that `mle-gym train` printed.")
    notes: list[str] = []
    samples = _read_lines(folder / "samples.jsonl", notes)
    metrics = _read_lines(folder / "metrics.jsonl", notes)
    if not samples and not metrics:
        raise UserError(f"{folder} holds no run: samples.jsonl and metrics.jsonl are missing or empty.")
    summary = _read_json(folder / "summary.json")
    if not summary:
        notes.append("The run has not finished (there is no summary.json); this is what it has recorded so far.")
    return RunData(
        folder=folder,
        config=_read_toml(folder / "config.toml", notes),
        samples=samples,
        metrics=metrics,
        audit=_read_json(folder / "audit.json"),
        evaluation=_read_json(folder / "evaluation.json"),
        summary=summary,
        best=_read_best(folder / "best"),
        notes=notes,
    )


def _read_lines(path: Path, notes: list[str]) -> list[dict[str, Any]]:
    """Return the objects of a JSON-lines file; damaged lines are left out and counted in ``notes``."""
    if not path.is_file():
        notes.append(f"{path.name} is missing.")
        return []
    records: list[dict[str, Any]] = []
    damaged = torn = 0
    with path.open("rb") as file:
        for line in file:
            try:
                record = json.loads(line)
            except ValueError:  # not UTF-8 either
                record = None
            if isinstance(record, dict):
                records.append(record)
            elif line.endswith(b"\n"):
                damaged += 1
            else:
                torn += 1
    if torn:
        notes.append(f"The last line of {path.name} is cut off and was left out.")
    if damaged:
        notes.append(f"{damaged} line(s) of {path.name} are damaged and were left out.")
    return records


def _read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object; empty where the file is missing or is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _read_toml(path: Path, notes: list[str]) -> dict[str, Any]:
    """Return the configuration; empty, with a note, where it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        notes.append(f"{path.name} is missing.")
    except ValueError as error:
        notes.append(f"{path.name} cannot be read: {error}.")
    return {}


def _read_best(folder: Path) -> list[Best]:
    """Return the best program of each task."""
    found = []
    for path in sorted(folder.glob("*/program.py")):
        record = _read_json(path.with_name("sample.json"))
        task = str(record.get("task") or path.parent.name.replace("mle_gym_", "mle_gym/", 1))
        found.append(Best(task, path.read_text(encoding="utf-8", errors="replace"), record))
    return found
