"""A competition's data on disk, prepared from Kaggle's files or invented."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from mle_gym.grading.grade import Grade, Split
from mle_gym.tasks.mlebench.catalogue import catalogue
from mle_gym.tasks.mlebench.grader import CompetitionGrader
from mle_gym.tasks.task import TaskData

__all__ = ["CompetitionData"]

Stamp = tuple[tuple[int, int], ...]


@lru_cache(maxsize=16)
def _grader(name: str, answers: Path, gold: Path, ranked: bool, stamp: Stamp) -> CompetitionGrader:
    return CompetitionGrader(name, catalogue()[name], answers, gold=gold, ranked=ranked)


@lru_cache(maxsize=256)
def _score(name: str, answers: Path, gold: Path, ranked: bool, stamp: Stamp, submission: Path, split: Split) -> float:
    return _grader(name, answers, gold, ranked, stamp).grade(submission, split).score


@dataclass(frozen=True)
class CompetitionData(TaskData):
    """A prepared folder: ``public`` for programs, ``private`` with the answers."""

    private_dir: Path = field(kw_only=True)

    @property
    def name(self) -> str:
        """The competition's slug."""
        return self.task.name

    @property
    def answers(self) -> Path:
        """The answers file; never mounted into a sandbox."""
        return self._path(catalogue()[self.name].answers_file)

    @property
    def gold(self) -> Path:
        """The perfect submission."""
        return self._path(catalogue()[self.name].gold_file)

    @property
    def grader(self) -> CompetitionGrader:
        """The grader, shared by all who grade against the same answers."""
        return _grader(*self._key())

    def grade(self, submission: Path, split: Split = "public") -> Grade:  # noqa: D102
        return self.grader.grade(submission, split)

    def sample_score(self, split: Split = "public") -> float:  # noqa: D102
        return _score(*self._key(), self.sample_path, split)

    @property
    def splits(self) -> tuple[Split, ...]:  # noqa: D102
        return self.grader.splits

    def write_perfect(self, path: Path) -> None:
        """Write the perfect submission; for checks of the task itself, never for a program."""
        shutil.copyfile(self.gold, path)

    def _path(self, name: str) -> Path:
        top, _, rest = name.partition("/")
        return (self.private_dir if top == "private" else self.public_dir) / rest

    def _key(self) -> tuple[str, Path, Path, bool, Stamp]:
        stats = [path.stat() for path in (self.answers, self.gold)]
        stamp = tuple((s.st_mtime_ns, s.st_size) for s in stats)
        return self.name, self.answers, self.gold, self.kind == "prepared", stamp
