"""What grading costs: seconds that each competition's grader takes for 1,000 and for 100,000 rows.

The perfect submission and the answers of its stand-in data are repeated under new ids. Run it with
``python -m benchmarks.grading``; on a machine that does nothing else.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.common import BenchmarkOptions, parse, print_header, print_table, save
from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.catalogue import Facts, catalogue
from mle_gym.tasks.mlebench.data import CompetitionData
from mle_gym.tasks.mlebench.grader import CompetitionGrader
from mle_gym.tasks.registry import get_task
from mle_gym.tasks.task import TaskUnavailable

__all__ = ["GradingOptions", "main"]

_SIZES = (1_000, 100_000)


@dataclass(frozen=True)
class GradingOptions(BenchmarkOptions):
    """Options of this benchmark."""

    tasks: tuple[str, ...] = ()
    """Competitions to measure; all when empty."""
    patience: float = 60.0
    """Seconds beyond which a grading that is expected to last longer is left out."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print a table, and save it where asked."""
    options = parse(GradingOptions, argv)
    print_header("Seconds to read, check and grade a submission", options)
    results = {name: _measure(name, 1 if options.quick else 3, options.patience) for name in _names(options)}
    columns = ["competition", *(head for size in _SIZES for head in ("rows", f"~{size:,}")), "note"]
    print_table(columns, [_row(name, result) for name, result in results.items()])
    save(options.json, options, results)
    return 0


def _names(options: GradingOptions) -> list[str]:
    names = sorted(options.tasks or catalogue())
    if unknown := [name for name in names if name not in catalogue()]:
        raise SystemExit(f"There is no competition {unknown[0]!r}; `mle-gym tasks --tag mlebench` names them all.")
    return names


def _row(name: str, result: dict[str, Any]) -> list[str]:
    cells = [name]
    for size in _SIZES:
        found = result["sizes"].get(str(size))
        cells += ["", ""] if found is None else [f"{found['rows']:,}", f"{found['seconds']:.3f} s"]
    return [*cells, result["note"]]


def _measure(name: str, repeats: int, patience: float) -> dict[str, Any]:
    """Return the seconds at each size, with a note where something is to be said about them."""
    result: dict[str, Any] = {"metric": catalogue()[name].metric, "sizes": {}, "note": ""}
    try:
        data = get_task(name).load(data="synthetic", size="tiny")
    except TaskUnavailable as error:
        return result | {"note": str(error)}
    assert isinstance(data, CompetitionData)
    if data.answers.suffix != ".csv":
        return result | {"note": f"not repeated: the answers are a {data.answers.suffix} file"}
    facts = catalogue()[name]
    best = CompetitionGrader(name, facts, data.answers, ranked=False).grade(data.gold, "all").score
    gold, answers = _cells(data.gold), _cells(data.answers)
    for size in _SIZES:
        before = max((found["seconds"] for found in result["sizes"].values()), default=0.0)
        if before * size / _SIZES[0] > patience:
            return result | {"note": f"left out: would take more than {patience:g} s"}
        times = math.ceil(size / len(gold))
        with tempfile.TemporaryDirectory() as folder:
            files = Path(folder) / "submission.csv", Path(folder) / "answers.csv"
            for frame, file in zip((gold, answers), files, strict=True):
                _repeat(frame, times, facts).to_csv(file, index=False)
            try:
                seconds, score = _grade(name, facts, *files, repeats)
            except InvalidSubmission as error:
                return result | {"note": f"cannot be repeated under new ids: {error}"}
        result["sizes"][str(size)] = {"rows": times * len(gold), "seconds": seconds}
        if not (math.isclose(score, best, rel_tol=1e-6, abs_tol=1e-9) or (math.isnan(score) and math.isnan(best))):
            result["note"] = f"repeated rows score {score:.6g}, the rows themselves {best:.6g}"
    return result


def _grade(name: str, facts: Facts, submission: Path, answers: Path, repeats: int) -> tuple[float, float]:
    """Return the median seconds and the score; reading the answers, which happens once, is left out."""
    grader = CompetitionGrader(name, facts, answers, ranked=False)
    times, score = [], math.nan
    for _ in range(repeats):
        start = time.perf_counter()
        score = grader.grade(submission, "all").score
        times.append(time.perf_counter() - start)
    return statistics.median(times), score


def _cells(path: Path) -> pd.DataFrame:
    """Read a table as the text that stands in it."""
    return pd.read_csv(path, dtype="str", keep_default_na=False)


def _repeat(frame: pd.DataFrame, times: int, facts: Facts) -> pd.DataFrame:
    """Repeat all rows; each time with other digits before the ids, so numbers stay numbers and ids stay unique."""
    rows = len(frame)
    long = frame.iloc[np.tile(np.arange(rows), times)].reset_index(drop=True)
    digits = pd.Series(np.repeat(np.arange(100_000, 100_000 + times), rows)).astype("str")
    for column in {*facts.key, facts.unit, facts.id_column} & set(frame.columns):
        long[column] = digits + long[column]
    return long


if __name__ == "__main__":
    sys.exit(main())
