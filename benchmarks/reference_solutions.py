"""Reference solutions of the offline tasks, and the medal thresholds that follow from them.

Each task has solutions of rising strength. They see the public folder only, and are graded on all test rows.
Thresholds: ``median`` is the baseline's score; of the solutions that beat it, the weakest gives bronze, the second best
silver and the best gold.

Run it with ``python -m benchmarks.reference_solutions``; ``--write`` replaces the thresholds that the tasks read.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.progress import track
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import mle_gym.tasks.offline
from benchmarks.common import BenchmarkOptions, parse, print_header, print_table, save
from benchmarks.references.folder import Folder, Reference
from benchmarks.references.images import DIGITS
from benchmarks.references.series import CARBON, RIDERS
from benchmarks.references.tabular import NEARLY_LINEAR, TABULAR
from benchmarks.references.text import ARTWORKS, REVIEWS, WORDS
from mle_gym.grading.grade import Thresholds
from mle_gym.tasks.csv_data import CsvTaskData
from mle_gym.tasks.offline.table import OFFLINE_TASKS
from mle_gym.tasks.registry import get_task

__all__ = ["REFERENCES", "Result", "main", "run_task", "thresholds"]

REFERENCES: Mapping[str, tuple[Reference, ...]] = {
    **{task.name: TABULAR for task in OFFLINE_TASKS if task.kind.startswith("tabular")},
    "breast-cancer": NEARLY_LINEAR,
    "digit-images": DIGITS,
    "food-reviews": REVIEWS,
    "word-sentiment": WORDS,
    "artwork-year": ARTWORKS,
    "co2-forecast": CARBON,
    "chicago-ridership": RIDERS,
}
"""Task -> its solutions."""

_SCALE = 10**4


@dataclass(frozen=True)
class Options(BenchmarkOptions):
    """Options of this benchmark; ``--quick`` runs the first two solutions of each task only."""

    tasks: tuple[str, ...] = ()
    """Names of tasks; all offline tasks when left out."""
    write: bool = False
    """Write the thresholds file that the tasks read. Needs every task and no ``--quick``."""


@dataclass(frozen=True, slots=True)
class Result:
    """One solution's scores on a task."""

    reference: str
    baseline: bool
    score: float
    """On all test rows."""
    public: float
    private: float
    seconds: float


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print a table, and save or write where asked."""
    options = parse(Options, argv)
    if options.write and (options.quick or options.tasks):
        raise SystemExit("--write needs every task and solution; leave out --quick and --tasks.")
    print_header("Reference solutions of the offline tasks", options)
    results: dict[str, list[Result]] = {}
    found: dict[str, Thresholds] = {}
    for name in track(options.tasks or tuple(REFERENCES), description="tasks", transient=True):
        references = REFERENCES[name][:2] if options.quick else REFERENCES[name]
        data = get_task(name).load()
        assert isinstance(data, CsvTaskData)
        results[name] = run_task(data, references, options.seed)
        if not options.quick:
            found[name] = thresholds(name, results[name], data.task.higher_is_better)
        _print(data, results[name], found.get(name))
    save(
        options.json,
        options,
        {
            name: {
                "solutions": [asdict(row) for row in rows],
                "thresholds": asdict(found[name]) if name in found else None,
            }
            for name, rows in results.items()
        },
    )
    if options.write:
        document = {
            "made_by": "python -m benchmarks.reference_solutions --write",
            "thresholds": {name: asdict(found[name]) for name in sorted(found)},
        }
        path = Path(mle_gym.tasks.offline.__file__).with_name("thresholds.json")
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def run_task(data: CsvTaskData, references: Sequence[Reference], seed: int) -> list[Result]:
    """Run solutions on one task and grade what they submit."""
    folder = Folder.of(data)
    results = []
    # One thread: two that wait for each other beside a busy process take ten times as long.
    with tempfile.TemporaryDirectory() as place, threadpool_limits(1):
        path = Path(place) / "submission.csv"
        for reference in references:
            start = time.perf_counter()
            predictions = reference.predict(folder, seed)
            seconds = time.perf_counter() - start
            folder.submission(predictions).to_csv(path, index=False)
            whole, public, private = (data.grade(path, split).score for split in ("all", "public", "private"))
            results.append(Result(reference.name, reference.baseline, whole, public, private, seconds))
    return results


def thresholds(name: str, results: Sequence[Result], higher_is_better: bool) -> Thresholds:
    """Return the thresholds that follow from the solutions' scores, rounded so that each solution still reaches them.

    Raises:
        ValueError: There is not one baseline, or fewer than three solutions beat it.
    """
    baselines = [result.score for result in results if result.baseline]
    if len(baselines) != 1:
        raise ValueError(f"Task {name!r} has {len(baselines)} baselines; exactly one is needed.")
    sign = 1 if higher_is_better else -1
    better = sorted((r.score for r in results if sign * r.score > sign * baselines[0]), key=lambda s: -sign * s)
    if len(better) < 3:
        raise ValueError(f"Task {name!r}: {len(better)} solutions beat the baseline; at least three must.")

    def reachable(score: float) -> float:
        scaled = score * _SCALE
        return (math.floor(scaled) if higher_is_better else math.ceil(scaled)) / _SCALE

    return Thresholds(
        gold=reachable(better[0]),
        silver=reachable(better[1]),
        bronze=reachable(better[-1]),
        median=reachable(baselines[0]),
    )


def _print(data: CsvTaskData, results: Sequence[Result], bars: Thresholds | None) -> None:
    direction = "higher" if data.task.higher_is_better else "lower"
    sample = (data.sample_score(split) for split in ("all", "public", "private"))
    rows: list[tuple[str, ...]] = [("sample submission", *(f"{score:.4f}" for score in sample), "")]
    for result in results:
        name = f"{result.reference} (baseline)" if result.baseline else result.reference
        shown = (f"{score:.4f}" for score in (result.score, result.public, result.private))
        rows.append((name, *shown, f"{result.seconds:.1f}"))
    print_table(
        ("solution", "all", "public", "private", "s"),
        rows,
        title=f"{data.task.name}: {data.task.metric}, {direction} is better",
    )
    if bars is not None:
        print(f"gold {bars.gold}, silver {bars.silver}, bronze {bars.bronze}, median {bars.median}\n", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
