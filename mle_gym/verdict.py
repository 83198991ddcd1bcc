"""Execution -> outcome, grade and one sentence."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from typing import Self, cast

from mle_gym.grading.grade import Grade, InvalidSubmission, Split
from mle_gym.outcome import Outcome
from mle_gym.sandbox.base import Execution, Status
from mle_gym.tasks.task import TaskData

__all__ = ["SUBMISSION", "Verdict"]

SUBMISSION = "submission.csv"
"""The file that a program has to write, in its working folder."""

_logger = logging.getLogger(__name__)

_OUTCOMES = {
    Status.PROGRAM_ERROR: Outcome.RUNTIME_ERROR,
    Status.TIMEOUT: Outcome.TIMEOUT,
    Status.OUT_OF_MEMORY: Outcome.OUT_OF_MEMORY,
    Status.DISK_LIMIT: Outcome.DISK_LIMIT,
    Status.OUTPUT_LIMIT: Outcome.OUTPUT_LIMIT,
    Status.CANCELLED: Outcome.CANCELLED,
    Status.INFRASTRUCTURE_ERROR: Outcome.INFRASTRUCTURE_ERROR,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one step came to."""

    outcome: Outcome
    message: str = ""
    """One sentence; ``""`` when scored."""
    grade: Grade | None = None
    """Only when scored."""
    grade_time: float = 0.0
    """Seconds to read and grade the submission."""

    @property
    def reward_valid(self) -> bool:
        """False where nothing was learnt about the program: the infrastructure failed, or the run was cancelled."""
        return self.outcome not in (Outcome.INFRASTRUCTURE_ERROR, Outcome.CANCELLED)

    @classmethod
    def of(cls, execution: Execution, data: TaskData, split: str) -> Self:
        """Judge an execution; never raises for what a program did.

        A program that failed is not graded, whatever it had written by then: half a run is not a solution.
        """
        if execution.status is not Status.OK:
            return cls(_OUTCOMES[execution.status], execution.message or f"The run ended: {execution.status}.")
        if reason := execution.refused.get(SUBMISSION):
            return cls(Outcome.INVALID_SUBMISSION, f"{SUBMISSION} was refused: {reason}.")
        path = execution.artifacts.get(SUBMISSION)
        if path is None:
            return cls(Outcome.NO_SUBMISSION, f"The program ended without writing {SUBMISSION}.")
        start = time.monotonic()
        try:
            grade = data.grade(path, cast(Split, split))
        except InvalidSubmission as error:
            return cls(Outcome.INVALID_SUBMISSION, str(error), grade_time=time.monotonic() - start)
        except Exception as error:
            # A fault of the grader, not of the program: it is reported, and the step is masked.
            _logger.exception("Grading %s on split %r failed", data.task.name, split)
            message = f"The grader of {data.task.name} failed: {type(error).__name__}: {error}"
            return cls(Outcome.INFRASTRUCTURE_ERROR, message, grade_time=time.monotonic() - start)
        elapsed = time.monotonic() - start
        if math.isnan(grade.score):
            message = "The score of this submission is not a number; predictions must vary and be finite."
            return cls(Outcome.INVALID_SUBMISSION, message, grade_time=elapsed)
        return cls(Outcome.SCORED, grade=grade, grade_time=elapsed)
