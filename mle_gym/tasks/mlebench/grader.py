"""Grading a competition's submission as MLE-bench does, with the reward firewall around it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mle_gym.grading.grade import Grade, InvalidSubmission, Split
from mle_gym.grading.medals import leaderboard_thresholds, medal, percentile, percentile_from_thresholds
from mle_gym.grading.splits import CannotCut, cut
from mle_gym.tasks.mlebench.catalogue import Facts
from mle_gym.tasks.mlebench.competition import competition_module
from mle_gym.tasks.mlebench.frames import max_submission_bytes, read_answers, read_leaderboard, read_submission_frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CompetitionGrader"]

_TRIES = 8
"""Salts that are tried until both parts of the firewall have what the metric needs."""


class CompetitionGrader:
    """Grades submissions of one competition against its answers.

    Args:
        name: The competition's slug; the salt of the firewall.
        facts: Its entry of the catalogue.
        answers: The answers file.
        gold: The perfect submission, which the parts of the firewall are tried with; without it there are no parts.
        ranked: Whether scores earn medals and percentiles; not so on invented data.
        leaderboard: A CSV file with the column ``score``, for exact percentiles.

    Raises:
        ValueError: The leaderboard has no such column, or a score in it is no number.
    """

    def __init__(
        self,
        name: str,
        facts: Facts,
        answers: Path,
        *,
        gold: Path | None = None,
        ranked: bool = True,
        leaderboard: Path | None = None,
    ) -> None:
        self.name = name
        self.facts = facts
        self.board = read_leaderboard(leaderboard) if leaderboard is not None and ranked else ()
        self.thresholds = facts.thresholds if ranked else None
        if self.board and self.thresholds is None:
            self.thresholds = leaderboard_thresholds(self.board, facts.higher_is_better)
        self._module = competition_module(facts.module)
        self._max_bytes = max_submission_bytes(answers)
        self.answers: Any = getattr(self._module, "read_answers", read_answers)(answers)
        self._public = self._cut(read_answers(gold)) if gold is not None else None

    @property
    def splits(self) -> tuple[Split, ...]:
        """Splits that can be graded; only ``all`` where the answers cannot be cut."""
        return ("all",) if self._public is None else ("public", "private", "all")

    def public_rows(self) -> NDArray[np.bool_]:
        """Which rows of the answers are in the public part.

        Raises:
            ValueError: The answers are not cut.
        """
        if self._public is None:
            raise ValueError(f"The answers of {self.name} are not cut into parts.")
        return self._public

    def grade(self, submission: Path, split: Split = "public") -> Grade:
        """Validate the whole file, then grade the split. The score may be nan, which MLE-bench calls valid.

        Raises:
            InvalidSubmission: One sentence that says which column, which row and what was expected.
            ValueError: The split does not exist here.
        """
        if split not in self.splits:
            raise ValueError(f"Split {split!r} does not exist for {self.name}; choose one of {', '.join(self.splits)}.")
        frame = read_submission_frame(submission, self._max_bytes)
        score = self._score(frame, self.answers)
        if split != "all":
            score = self._score(*self._part(frame, split))
        higher, bars = self.facts.higher_is_better, self.thresholds
        if bars is None:
            return Grade(score, higher, split)
        # MLE-bench ranks the score rounded to five decimals.
        rounded = round(score, 5) if math.isfinite(score) else score
        known = percentile(rounded, self.board, higher)
        rank = known if self.board else percentile_from_thresholds(rounded, bars, higher)
        return Grade(score, higher, split, medal(rounded, bars, higher), rank)

    def _score(self, frame: pd.DataFrame, answers: Any) -> float:
        with _no_crash(self.name):
            return float(self._module.grade(frame.copy(deep=False), answers))

    def _part(self, frame: pd.DataFrame, split: Split) -> tuple[pd.DataFrame, Any]:
        rows = self.public_rows() if split == "public" else ~self.public_rows()
        if part := getattr(self._module, "part", None):
            submission, answers = part(frame, self.answers, rows)
            return submission, answers
        answers = self.answers[rows].reset_index(drop=True)
        if not self.facts.key:
            return frame[rows].reset_index(drop=True), answers
        key = list(self.facts.key)
        if len(key) == 1:  # the same, fast enough for millions of pixels or events
            ids, wanted_ids = frame[key[0]], answers[key[0]]
            if not (ids.dtype.kind in "iuf" and wanted_ids.dtype.kind in "iuf"):  # Arrow's own isin is six times slower
                ids, wanted_ids = ids.astype(object), wanted_ids.astype(object)
            return frame[ids.isin(wanted_ids)].reset_index(drop=True), answers
        wanted = set(answers[key].itertuples(index=False, name=None))
        mine = [row in wanted for row in frame[key].itertuples(index=False, name=None)]
        return frame[mine].reset_index(drop=True), answers

    def _cut(self, gold: pd.DataFrame) -> NDArray[np.bool_] | None:
        """The public rows of the answers; None where no cut leaves two parts that can be graded."""
        facts, answers = self.facts, self.answers
        if facts.unit == "none" or not hasattr(answers, "columns"):
            return None
        column, _, pattern = (facts.unit or facts.key[0]).partition(":")
        names = answers[column].astype(str)
        units = (names.str.extract(pattern, expand=False).fillna(names) if pattern else names).tolist()
        classes = (
            answers[list(facts.stratify)].astype(str).agg("\x1f".join, axis=1).tolist() if facts.stratify else None
        )
        for attempt in range(_TRIES):
            salt = f"{self.name}/{attempt}/firewall"
            try:
                self._public = cut(units, salt, classes if attempt == 0 else None)
            except CannotCut:
                continue
            if self._stratified() and all(self._gradable(gold, split) for split in ("public", "private")):
                return self._public
        return None

    def _stratified(self) -> bool:
        """Whether both parts have every value of each stratified column, or all that a single unit leaves room for."""
        public = self.public_rows()
        return all(
            self.answers.loc[public, column].nunique() == self.answers.loc[~public, column].nunique()
            for column in self.facts.stratify
        )

    def _gradable(self, gold: pd.DataFrame, split: Split) -> bool:
        try:
            return not math.isnan(self._score(*self._part(gold, split)))
        except InvalidSubmission:
            return False


@contextlib.contextmanager
def _no_crash(name: str) -> Iterator[None]:
    """Turn whatever a grader trips over into a sentence; graders are tested on good files, so this one is to blame."""
    try:
        with np.errstate(all="ignore"):
            yield
    except InvalidSubmission:
        raise
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:160]
        raise InvalidSubmission(
            f"The submission cannot be graded: the metric of {name} fails on it ({type(error).__name__}: {reason})."
        ) from error
