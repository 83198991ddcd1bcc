"""Grading by task name."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from mle_gym.grading.grade import Grade, Split

__all__ = ["GradesAnswers", "grade"]


@runtime_checkable
class GradesAnswers(Protocol):
    """A task that can grade against an answers file that the caller names."""

    def grade_with(self, answers: Path, submission: Path, split: Split) -> Grade:
        """Grade ``submission`` against ``answers``."""


def grade(task_id: str, submission: Path | str, answers: Path | str | None = None, split: Split = "all") -> Grade:
    """Grade a submission file of a registered task.

    Args:
        task_id: A task's name or environment id, for example ``credit-default``.
        submission: The file.
        answers: An answers file to use instead of the task's own.
        split: ``public``, ``private`` or ``all``.

    Raises:
        InvalidSubmission: One sentence that says which column, which row and what was expected.
        KeyError: No task has this name.
        TaskUnavailable: The task's data cannot be had here.
        ValueError: The split does not exist here, or the task takes no answers file.
    """
    from mle_gym.tasks.registry import get_task

    task = get_task(task_id)
    if answers is None:
        return task.load().grade(Path(submission), split)
    if not isinstance(task, GradesAnswers):
        raise ValueError(f"Task {task.name!r} grades against its own answers only; leave out `answers`.")
    return task.grade_with(Path(answers), Path(submission), split)
