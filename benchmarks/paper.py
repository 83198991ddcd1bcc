"""The published table of arXiv 2509.01684, and runs of one's own beside it.

``python -m benchmarks.paper`` prints what is published; ``python -m benchmarks.paper RUN ...`` adds a column with the
private scores of these run folders (their ``summary.json``). Runs on stand-in data are shown and never compared.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from benchmarks.common import BenchmarkOptions, parse, print_table, save
from benchmarks.published import COLUMNS, HEADLINES, RL, SCAFFOLDS, TASKS, UNKNOWN, Cell
from benchmarks.relative_improvement import Missing, best_per_task, relative_improvement

__all__ = ["main", "read_runs"]

BEST = "best scaffold"
OWN = "these runs"


@dataclass(frozen=True)
class Options(BenchmarkOptions):
    """Print the published table of arXiv 2509.01684, with runs of one's own beside it."""

    runs: Annotated[Positional[tuple[Path, ...]], arg(metavar="RUN")] = ()
    """Run folders, or summary.json files; several of one task are averaged."""
    missing: Missing = "drop"
    """What a task without one of two scores counts in a mean: drop (not at all), zero (no improvement), raise."""


@dataclass(frozen=True)
class Result:
    """What runs of one task came to."""

    scores: tuple[float, ...]
    """Private score of each run; nan where a run found nothing valid."""
    data: str
    """``prepared``, ``synthetic``, ``offline``; "" where the summary does not say, "mixed" where they differ."""
    reward_split: str

    @property
    def comparable(self) -> bool:
        """Whether the data are the competition's own."""
        return self.data == "prepared"

    @property
    def cell(self) -> Cell:
        """Mean and standard error over the runs that found something."""
        known = [score for score in self.scores if not math.isnan(score)]
        if not known:
            return Cell(None, note="none valid")
        error = statistics.stdev(known) / math.sqrt(len(known)) if len(known) > 1 else None
        return Cell(statistics.fmean(known), error)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables, and save the numbers where asked."""
    options = parse(Options, argv)
    try:
        own = read_runs(options.runs)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    higher = {task.name: task.higher_is_better for task in TASKS}
    columns = {
        name: {task.name: task.cells[at].mean for task in TASKS if task.cells[at] is not UNKNOWN}
        for at, name in enumerate(COLUMNS)
    }
    columns[BEST] = dict(best_per_task([columns[name] for name in SCAFFOLDS], higher))
    print_table(
        ("task", "", *(name.replace(" ", "\n", 1) for name in COLUMNS), *([OWN.replace(" ", "\n")] if own else [])),
        [
            (
                task.name,
                "↑" if task.higher_is_better else "↓",
                *map(_text, task.cells),
                *([_own_text(own.get(task.name))] if own else []),
            )
            for task in TASKS
        ],
        title="Test scores, mean ± standard error (↑ higher is better; N/A no valid submission; . not known here)",
    )
    others = {name: result for name, result in own.items() if name not in higher}
    if others:
        print_table(
            ("other task", OWN, "runs", "data"),
            [(name, _own_text(result), len(result.scores), result.data or "?") for name, result in others.items()],
        )
    compared = _compare(columns, own, higher, options.missing)
    print_table(
        ("mean relative improvement", "over", "mean", "tasks", "wins", "missing", "not known", "the paper says"),
        [
            (
                *(row["of"], row["over"], _percent(row["mean"]), row["tasks"], row["wins"]),
                *(len(row["missing"]), len(row["unknown"])),
                _percent(HEADLINES.get(row["over"], math.nan) if row["of"] == RL else math.nan),
            )
            for row in compared
        ],
        title=f"Relative improvement, signs turned where lower is better (missing: {options.missing})",
    )
    if shown := [name for name, result in own.items() if name in higher and not result.comparable]:
        print(f"* stand-in or unknown data: shown, but in no mean ({', '.join(shown)}).")
    save(
        options.json,
        options,
        {
            "published": {task.name: dict(zip(COLUMNS, map(asdict, task.cells), strict=True)) for task in TASKS},
            "runs": {name: {**asdict(result), "comparable": result.comparable} for name, result in own.items()},
            "improvement": compared,
        },
    )
    return 0


def read_runs(paths: Sequence[Path]) -> dict[str, Result]:
    """Return the results of run folders by task name.

    The score of a run is the private score of the best of the programs that its trained policy wrote for the final
    evaluation; without an evaluation, of the best program of the whole run. Both are chosen by their public score.

    Raises:
        FileNotFoundError: A run has no summary.
        ValueError: A summary is not readable as one.
    """
    found: dict[str, list[tuple[float, str, str]]] = {}
    for path in paths:
        file = path / "summary.json" if path.is_dir() else path
        if not file.is_file():
            raise FileNotFoundError(f"{path} has no summary.json; a run writes it when it has ended.")
        try:
            summary = json.loads(file.read_text(encoding="utf-8"))
            after = (summary.get("evaluation") or {}).get("after") or {}
            for env_id, row in summary["tasks"].items():
                score = (after.get(env_id) or {}).get("best_private_score")
                score = row.get("best_private_score") if score is None else score
                name = env_id.rpartition("/")[2].rpartition("-v")[0] or env_id
                value = math.nan if score is None else float(score)
                found.setdefault(name, []).append((value, row.get("data") or "", row.get("reward_split") or ""))
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise ValueError(f"{file} is not the summary of a run ({type(error).__name__}: {error}).") from error
    return {
        name: Result(tuple(score for score, _, _ in rows), _one(row[1] for row in rows), _one(row[2] for row in rows))
        for name, rows in found.items()
    }


def _one(values: Any) -> str:
    different = set(values)
    return different.pop() if len(different) == 1 else "mixed"


def _compare(
    columns: Mapping[str, Mapping[str, float | None]],
    own: Mapping[str, Result],
    higher: Mapping[str, bool],
    missing: Missing,
) -> list[dict[str, Any]]:
    rows = []
    pairs = [(RL, columns[RL], name) for name in (*COLUMNS, BEST) if name != RL]
    scores = {name: result.cell.mean for name, result in own.items() if name in higher and result.comparable}
    if scores:
        pairs += [(OWN, scores, name) for name in (*COLUMNS, BEST)]
    for who, ours, name in pairs:
        # Own runs are compared on the tasks that were run, not on those that nobody tried.
        tried = list(higher if who == RL else scores)
        # A cell that nobody quotes is no missing result: it never counts as 0.
        directions = {task: higher[task] for task in tried if task in columns[name]}
        try:
            result = relative_improvement(ours, columns[name], directions, missing=missing)
        except ValueError as error:
            raise SystemExit(f"{who} over {name}: {error}") from error
        rows.append(
            {
                "of": who,
                "over": name,
                "mean": result.mean,
                "tasks": len(result.by_task),
                "wins": result.wins,
                "by_task": dict(result.by_task),
                "missing": dict(result.missing),
                "unknown": [task for task in tried if task not in directions],
            }
        )
    return rows


def _text(cell: Cell) -> str:
    if cell.mean is None:
        return cell.note
    number = f"{cell.mean:.4g}" if abs(cell.mean) >= 1 else f"{cell.mean:.3f}"
    return number if cell.error is None else f"{number}±{cell.error:.3f}"


def _own_text(result: Result | None) -> str:
    if result is None:
        return "-"
    return _text(result.cell) + ("" if result.comparable else " *")


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:+.1%}"


if __name__ == "__main__":
    sys.exit(main())
