"""What a competition's module holds."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = ["CompetitionModule", "Size", "competition_module"]

Size = Literal["tiny", "small"]


class CompetitionModule(Protocol):
    """A module of ``mle_gym.tasks.mlebench.competitions``.

    It may also define

    * ``read_answers(path) -> Any``, where the answers are not a CSV file;
    * ``COMPANIONS``, names of files that it needs and Kaggle does not have;
    * ``part(submission, answers, rows) -> (submission, answers)``, where one row of the answers is not one row of the
      submission. It cuts both to the rows of the answers (a mask of shape ``(rows,)``); only a submission that has been
      graded as a whole is cut, so its columns and ids are right.
    """

    def grade(self, submission: pd.DataFrame, answers: Any) -> float:
        """Return the raw score, the same as MLE-bench's before rounding; it may be nan.

        Args:
            submission: The file as pandas reads it; nothing about it has been checked.
            answers: What ``read_answers`` returns, by default the answers file as pandas reads it.

        Raises:
            InvalidSubmission: One sentence that says which column, which row and what was expected.
        """
        ...

    def prepare(self, raw: Path, public: Path, private: Path) -> None:
        """Make the public and the private folder (both exist and are empty) from Kaggle's files.

        Every file has the bytes that MLE-bench's preparation gives it.
        """
        ...

    def stand_in(self, raw: Path, rng: np.random.Generator, size: Size) -> None:
        """Write invented data in Kaggle's layout to the empty folder ``raw``, for ``prepare`` to take.

        All values come from ``rng``. There is something to learn, every file can be opened by the usual libraries, and
        the whole takes seconds and a few MB.
        """
        ...


def competition_module(name: str) -> CompetitionModule:
    """Import a competition's module.

    Args:
        name: As :attr:`mle_gym.tasks.mlebench.catalogue.Facts.module`.
    """
    return cast(CompetitionModule, importlib.import_module(f"mle_gym.tasks.mlebench.competitions.{name}"))
