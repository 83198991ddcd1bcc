"""What a task is: a name, words, data on disk, and a way to grade."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mle_gym.grading.grade import Grade, Split, Thresholds

__all__ = ["MissingDependency", "Task", "TaskData", "TaskUnavailable"]


class TaskUnavailable(RuntimeError):
    """The task cannot be used here; one sentence says why and what to do."""


class MissingDependency(TaskUnavailable):
    """A package with the task's data is not installed; the message names the extra that brings it."""


@dataclass(frozen=True)
class TaskData(ABC):
    """A task's data, prepared on disk. Cheap to hold; the files are read only when graded."""

    task: Task
    kind: str
    """``offline``, ``prepared`` or ``synthetic``."""
    public_dir: Path
    """The only folder a program sees, mounted as ``input``."""
    sample_submission: str
    """File name of the sample submission."""
    source_paths: tuple[Path, ...] = ()
    """Host paths that hold the labels (in installed packages) and must be hidden from programs."""
    sample_copy: Path | None = field(default=None, kw_only=True)
    """Where the sample submission is when it is not in ``public_dir``; programs see it beside ``input``."""

    @property
    def sample_path(self) -> Path:
        """The sample submission on the host."""
        return self.sample_copy or self.public_dir / self.sample_submission

    @property
    def sample_shown(self) -> str:
        """The sample submission as a program sees it, from its working folder."""
        return self.sample_copy.name if self.sample_copy else f"input/{self.sample_submission}"

    @property
    def note(self) -> str:
        """What a reader of scores on these data has to know; "" where they are what they seem."""
        return ""

    @abstractmethod
    def grade(self, submission: Path, split: Split = "public") -> Grade:
        """Validate the whole file, then grade the split's rows.

        Raises:
            InvalidSubmission: One sentence that says which column, which row and what was expected.
        """

    @abstractmethod
    def sample_score(self, split: Split = "public") -> float:
        """Score of the sample submission, cached."""

    @property
    @abstractmethod
    def splits(self) -> tuple[Split, ...]:
        """Splits that can be graded; ``("all",)`` where the answers cannot be cut."""


@dataclass(frozen=True)
class Task(ABC):
    """A machine-learning task: what to solve. Holds no data."""

    name: str
    """The part of the id between ``mle_gym/`` and ``-v0``."""
    title: str
    kind: str
    """``tabular-binary``, ``tabular-multiclass``, ``tabular-regression``, ``image-multiclass``, ``text-binary``,
    ``text-regression``, ``time-series`` ..."""
    description: str
    """Markdown: what the data are and what is to be predicted. One short paragraph comes first."""
    metric: str
    """Name of the metric, as shown to the model."""
    higher_is_better: bool
    target: tuple[str, ...]
    """Columns of the submission that hold predictions."""
    id_column: str
    train_files: tuple[str, ...] = ("train.csv",)
    """Files or folders with labelled data, in the public folder."""
    test_files: tuple[str, ...] = ("test.csv",)
    source: str = ""
    """Where the data come from."""
    licence: str = ""
    thresholds: Thresholds | None = None
    tags: tuple[str, ...] = ()
    known_issues: tuple[str, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    """Suggested ``time``, ``memory_mb``, ``cores``, ``gpus`` where the defaults do not fit."""

    @abstractmethod
    def load(self, *, data: str = "auto", data_dir: Path | None = None, size: str | None = None) -> TaskData:
        """Return the task's data, preparing them on first use (atomic, safe with many processes at once).

        Raises:
            TaskUnavailable: The data cannot be had here.
        """
