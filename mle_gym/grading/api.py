"""Grading by task name."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from mle_gym.grading.grade import Grade, InvalidSubmission, Split

__all__ = ["GradesAnswers", "grade"]


@runtime_checkable
class GradesAnswers(Protocol):
    """A task that can grade against an answers file that the caller names."""

    def grade_with(self, answers: Path, submission: Path, split: Split) -> Grade:
        """Grade ``submission`` against ``answers``."""


def grade(
    task_id: str,
    submission: Path | str,
    answers: Path | str | None = None,
    split: Split = "all",
    *,
    data_dir: Path | None = None,
) -> Grade:
    """Grade a submission file of a registered task.

    Args:
        task_id: A task's name or environment id, for example ``credit-default``.
        submission: The file.
        answers: An answers file to use instead of the task's own.
        split: ``public``, ``private`` or ``all``.
        data_dir: Where prepared data live, instead of the default place.

    Returns:
        The grade; ``valid`` is False and ``error`` says why when the file breaks a rule.

    Raises:
        KeyError: No task has this name.
        TaskUnavailable: The task's data cannot be had here.
        ValueError: The split does not exist here, or the task takes no answers file.
    """
    from mle_gym.tasks.registry import get_task

    task = get_task(task_id)
    if answers is not None and not isinstance(task, GradesAnswers):
        raise ValueError(f"Task {task.name!r} grades against its own answers only; leave out `answers`.")
    try:
        if answers is None:
            return task.load(data_dir=data_dir).grade(Path(submission), split)
        assert isinstance(task, GradesAnswers)
        return task.grade_with(Path(answers), Path(submission), split)
    except InvalidSubmission as error:
        return Grade(float("nan"), task.higher_is_better, split, valid=False, error=str(error))
