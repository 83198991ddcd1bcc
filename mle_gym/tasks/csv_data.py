"""Task data whose answers are a CSV file graded by a named metric."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from mle_gym.grading.grade import Grade, Split
from mle_gym.grading.grader import Grader, GradingRules
from mle_gym.tasks.task import TaskData

__all__ = ["CsvTaskData"]


@lru_cache(maxsize=64)
def _grader(rules: GradingRules, answers: Path, stamp: tuple[int, int]) -> Grader:
    return Grader(rules, answers)


@lru_cache(maxsize=256)
def _sample_score(rules: GradingRules, answers: Path, stamp: tuple[int, int], sample: Path, split: Split) -> float:
    return _grader(rules, answers, stamp).grade(sample, split).score


@dataclass(frozen=True)
class CsvTaskData(TaskData):
    """Data on disk with one answers file and grading rules; the answers are read when first graded."""

    rules: GradingRules = field(kw_only=True)
    answers: Path = field(kw_only=True)
    """The answers file; never mounted into a sandbox."""
    data_version: str = ""
    """Digest of every prepared file."""

    @property
    def grader(self) -> Grader:
        """The grader, shared by all who grade against the same answers."""
        return _grader(self.rules, self.answers, self._stamp())

    def _stamp(self) -> tuple[int, int]:
        status = self.answers.stat()
        return status.st_mtime_ns, status.st_size

    def grade(self, submission: Path, split: Split = "public") -> Grade:  # noqa: D102
        return self.grader.grade(submission, split)

    def sample_score(self, split: Split = "public") -> float:  # noqa: D102
        sample = self.sample_path
        return _sample_score(self.rules, self.answers, self._stamp(), sample, split)

    @property
    def splits(self) -> tuple[Split, ...]:  # noqa: D102
        return self.grader.splits

    def write_perfect(self, path: Path) -> None:
        """Write the submission that equals the answers; for checks of the task itself, never for a program."""
        with (
            self.answers.open(encoding="utf-8", newline="") as source,
            path.open("w", encoding="utf-8", newline="") as out,
        ):
            names = [self.rules.id_column, *self.rules.target]
            writer = csv.DictWriter(out, names, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(csv.DictReader(source))
