"""Grading reports in MLE-bench's format, for one submission and for a file that lists many."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mle_gym.grading.api import grade
from mle_gym.grading.grade import Grade
from mle_gym.grading.medals import above_median
from mle_gym.tasks.registry import get_task

__all__ = ["CompetitionReport", "Submission", "read_submissions", "report", "summary", "write_summary"]


@dataclass(frozen=True, slots=True)
class CompetitionReport:
    """One submission's grade; the field names are MLE-bench's."""

    competition_id: str
    score: float | None
    """Rounded to five decimals, as MLE-bench ranks it; None when the submission is not valid."""
    gold_threshold: float | None
    silver_threshold: float | None
    bronze_threshold: float | None
    median_threshold: float | None
    any_medal: bool
    gold_medal: bool
    silver_medal: bool
    bronze_medal: bool
    above_median: bool
    submission_exists: bool
    valid_submission: bool
    is_lower_better: bool
    created_at: str
    submission_path: str


@dataclass(frozen=True, slots=True)
class Submission:
    """A line of a ``submission.jsonl``."""

    competition_id: str
    submission_path: Path | None


def report(task_id: str, submission: Path | None, data_dir: Path | None = None) -> CompetitionReport:
    """Grade a submission on all rows, as MLE-bench does.

    Args:
        task_id: The competition's slug.
        submission: The file; None, or one that does not exist or does not end in ``.csv``, counts as no submission.
        data_dir: Where prepared data live, instead of the default place.

    Raises:
        KeyError: There is no such competition.
        TaskUnavailable: Its data cannot be had here.
    """
    exists = submission is not None and submission.is_file() and submission.suffix.lower() == ".csv"
    found = grade(task_id, submission, split="all", data_dir=data_dir) if submission is not None and exists else None
    return from_grade(task_id, found, submission, exists=exists)


def from_grade(task_id: str, found: Grade | None, submission: Path | None, *, exists: bool = True) -> CompetitionReport:
    """Make the report of a grade that is known already."""
    task = get_task(task_id)
    bars = task.thresholds
    valid = found is not None and found.valid
    score = None
    if found is not None and valid:
        score = round(found.score, 5) if math.isfinite(found.score) else found.score
    medal = found.medal if found is not None else ""
    # On stand-in data nothing is ranked, and a grade from there has no percentile.
    ranked = score is not None and found is not None and not math.isnan(found.percentile)
    return CompetitionReport(
        competition_id=task.name,
        score=score,
        gold_threshold=bars.gold if bars else None,
        silver_threshold=bars.silver if bars else None,
        bronze_threshold=bars.bronze if bars else None,
        median_threshold=bars.median if bars else None,
        any_medal=bool(medal),
        gold_medal=medal == "gold",
        silver_medal=medal == "silver",
        bronze_medal=medal == "bronze",
        above_median=ranked and bars is not None and above_median(score or 0.0, bars, task.higher_is_better),
        submission_exists=exists,
        valid_submission=valid,
        is_lower_better=not task.higher_is_better,
        created_at=datetime.now(UTC).isoformat(),
        submission_path=str(submission),
    )


def read_submissions(path: Path) -> list[Submission]:
    """Read a ``submission.jsonl``: one object a line; blank lines and those behind ``#`` or ``//`` are skipped.

    Raises:
        ValueError: A line is not such an object; the sentence names it.
    """
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith(("#", "//")):
            continue
        try:
            entry = json.loads(text)
            name, file = entry["competition_id"], entry["submission_path"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f'{path.name} line {number} is not an object with "competition_id" and "submission_path".'
            ) from None
        if not isinstance(name, str) or not isinstance(file, str | None):
            raise ValueError(f"{path.name} line {number}: competition_id must be text, submission_path text or null.")
        found.append(Submission(name, Path(file) if file else None))
    return found


def summary(reports: Sequence[CompetitionReport]) -> dict[str, Any]:
    """Count over many reports; the keys are MLE-bench's."""
    return {
        "total_runs": len(reports),
        "total_runs_with_submissions": sum(r.submission_exists for r in reports),
        "total_valid_submissions": sum(r.valid_submission for r in reports),
        "total_medals": sum(r.any_medal for r in reports),
        "total_gold_medals": sum(r.gold_medal for r in reports),
        "total_silver_medals": sum(r.silver_medal for r in reports),
        "total_bronze_medals": sum(r.bronze_medal for r in reports),
        "total_above_median": sum(r.above_median for r in reports),
        "competition_reports": [asdict(r) for r in reports],
    }


def write_summary(reports: Sequence[CompetitionReport], folder: Path) -> Path:
    """Write ``<time>_grading_report.json`` as ``mlebench grade`` does, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S-%Z")
    path = folder / f"{stamp}_grading_report.json"
    # MLE-bench writes nan as NaN, which only Python reads; others' tools expect these bytes.
    path.write_text(json.dumps(summary(reports), indent=2) + "\n", encoding="utf-8")
    return path
