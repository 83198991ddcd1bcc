from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from mle_gym.grading.grade import Grade, InvalidSubmission, Split
from mle_gym.outcome import Outcome
from mle_gym.sandbox.base import Execution, Status
from mle_gym.tasks import TaskData, get_task
from mle_gym.verdict import SUBMISSION, Verdict


@dataclass(frozen=True)
class Graded(TaskData):
    """Data whose grader says what it is told to."""

    score: float = 0.5
    error: Exception | None = None

    def grade(self, submission: Path, split: Split = "public") -> Grade:
        if self.error is not None:
            raise self.error
        return Grade(self.score, True, split)

    def sample_score(self, split: Split = "public") -> float:
        return 0.0

    @property
    def splits(self) -> tuple[Split, ...]:
        return ("public", "private", "all")


def _data(tmp_path: Path, score: float = 0.5, error: Exception | None = None) -> Graded:
    task = get_task("credit-default")
    return Graded(task, "offline", tmp_path, "sample_submission.csv", score=score, error=error)


@pytest.fixture
def wrote(tmp_path: Path) -> Execution:
    return Execution(Status.OK, 0, artifacts={SUBMISSION: tmp_path / SUBMISSION})


def test_scored(tmp_path: Path, wrote: Execution) -> None:
    verdict = Verdict.of(wrote, _data(tmp_path), "private")
    assert (verdict.outcome, verdict.message, verdict.reward_valid) == (Outcome.SCORED, "", True)
    assert verdict.grade == Grade(0.5, True, "private")


def test_a_score_that_is_no_number_is_an_invalid_submission(tmp_path: Path, wrote: Execution) -> None:
    verdict = Verdict.of(wrote, _data(tmp_path, math.nan), "public")
    assert (verdict.outcome, verdict.grade, verdict.reward_valid) == (Outcome.INVALID_SUBMISSION, None, True)
    assert Verdict.of(wrote, _data(tmp_path, -math.inf), "public").outcome is Outcome.SCORED


def test_invalid_refused_and_missing(tmp_path: Path, wrote: Execution) -> None:
    verdict = Verdict.of(wrote, _data(tmp_path, error=InvalidSubmission("Column id is missing.")), "public")
    assert (verdict.outcome, verdict.message) == (Outcome.INVALID_SUBMISSION, "Column id is missing.")
    refused = Execution(Status.OK, 0, refused={SUBMISSION: "it is a symbolic link"})
    verdict = Verdict.of(refused, _data(tmp_path), "public")
    assert verdict.outcome is Outcome.INVALID_SUBMISSION
    assert "it is a symbolic link" in verdict.message
    assert Verdict.of(Execution(Status.OK, 0), _data(tmp_path), "public").outcome is Outcome.NO_SUBMISSION


def test_a_grader_that_fails_masks_the_step(tmp_path: Path, wrote: Execution) -> None:
    verdict = Verdict.of(wrote, _data(tmp_path, error=ZeroDivisionError("by zero")), "public")
    assert (verdict.outcome, verdict.reward_valid) == (Outcome.INFRASTRUCTURE_ERROR, False)
    assert "ZeroDivisionError: by zero" in verdict.message


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_what_failed_is_not_graded(tmp_path: Path, wrote: Execution, status: Status) -> None:
    failed = Execution(status, 1, message="It went wrong.", artifacts=wrote.artifacts)
    verdict = Verdict.of(failed, _data(tmp_path), "public")
    same = {Status.PROGRAM_ERROR: Outcome.RUNTIME_ERROR}
    assert verdict.outcome == same.get(status, status)
    assert (verdict.grade, verdict.message) == (None, "It went wrong.")
    assert verdict.reward_valid == (status not in (Status.CANCELLED, Status.INFRASTRUCTURE_ERROR))
    assert Verdict.of(Execution(status), _data(tmp_path), "public").message
