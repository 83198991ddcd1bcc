"""A competition's data on disk, prepared from Kaggle's files or invented."""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from mle_gym.grading.grade import Grade, Split
from mle_gym.tasks.mlebench.catalogue import catalogue
from mle_gym.tasks.mlebench.grader import CompetitionGrader
from mle_gym.tasks.mlebench.store import differences
from mle_gym.tasks.task import TaskData

__all__ = ["CompetitionData"]


@dataclass(frozen=True)
class _Key:
    """What a grader is made of; a new one is made when a file changes."""

    name: str
    answers: Path
    gold: Path
    ranked: bool
    board: Path | None
    stamp: tuple[tuple[int, int], ...]


@lru_cache(maxsize=16)
def _grader(key: _Key) -> CompetitionGrader:
    facts = catalogue()[key.name]
    return CompetitionGrader(key.name, facts, key.answers, gold=key.gold, ranked=key.ranked, leaderboard=key.board)


@lru_cache(maxsize=256)
def _score(key: _Key, submission: Path, split: Split) -> float:
    return _grader(key).grade(submission, split).score


@dataclass(frozen=True)
class CompetitionData(TaskData):
    """A prepared folder: ``public`` for programs, ``private`` with the answers."""

    private_dir: Path = field(kw_only=True)

    @property
    def note(self) -> str:
        """Stand-ins, and prepared files that are not MLE-bench's, are called so."""
        if self.kind == "synthetic":
            return "stand-in data, not Kaggle's: scores say nothing about the competition"
        differing = differences(self.private_dir.parent)
        return f"{len(differing)} prepared files differ from MLE-bench's: scores may not compare" if differing else ""

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
        return _grader(self._key())

    def grade(self, submission: Path, split: Split = "public") -> Grade:  # noqa: D102
        return self.grader.grade(submission, split)

    def sample_score(self, split: Split = "public") -> float:  # noqa: D102
        score = _score(self._key(), self.sample_path, split)
        # A constant column has no correlation (nan); as a baseline that is as good as knowing nothing: 0.
        return 0.0 if math.isnan(score) else score

    @property
    def splits(self) -> tuple[Split, ...]:  # noqa: D102
        return self.grader.splits

    def write_perfect(self, path: Path) -> None:
        """Write the perfect submission; for checks of the task itself, never for a program."""
        shutil.copyfile(self.gold, path)

    def _path(self, name: str) -> Path:
        top, _, rest = name.partition("/")
        return (self.private_dir if top == "private" else self.public_dir) / rest

    @property
    def leaderboard(self) -> Path | None:
        """The competition's ``leaderboard.csv`` beside prepared data, where the user has one."""
        path = self.private_dir.parent.parent / "leaderboard.csv"
        return path if self.kind == "prepared" and path.is_file() else None

    def _key(self) -> _Key:
        board = self.leaderboard
        stats = [path.stat() for path in (self.answers, self.gold, board) if path is not None]
        stamp = tuple((s.st_mtime_ns, s.st_size) for s in stats)
        return _Key(self.name, self.answers, self.gold, self.kind == "prepared", board, stamp)
