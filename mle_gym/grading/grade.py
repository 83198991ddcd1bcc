"""The result of grading a submission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Grade", "InvalidSubmission", "Split", "Thresholds"]

Split = Literal["public", "private", "all"]


class InvalidSubmission(ValueError):
    """The submission breaks a rule; the message is one sentence: which column, which row, what was expected."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Scores that earn a medal (inclusive) and the median (exclusive)."""

    gold: float
    silver: float
    bronze: float
    median: float


@dataclass(frozen=True, slots=True)
class Grade:
    """A submission's score on one split."""

    score: float
    """Raw metric; nan when the submission is not valid, and where the metric itself is."""
    higher_is_better: bool
    split: str
    medal: str = ""
    """``gold``, ``silver``, ``bronze`` or ``""``."""
    percentile: float = float("nan")
    """Share of the leaderboard that the score beats, in [0, 1]; nan where none is known."""
    valid: bool = True
    error: str = ""
    """Why the submission is not valid: one sentence."""
