"""Run-length encodings of masks: text of pairs "start length", pixels counted from 1, measured without decoding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import say

__all__ = ["Runs", "dice", "encode_runs", "parse_runs", "read_runs"]

_FAR = 2**62
"""Numbers beyond any picture; larger ones are cut to it, so that sums stay in 64 bits."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The set pixels of a flat mask as half-open runs, counted from 0, ascending and apart.

    Attributes:
        starts: First pixel of each run, int64, shape ``(runs,)``.
        ends: The pixel after the last one of each run, shape ``(runs,)``.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @property
    def area(self) -> int:
        """Number of set pixels."""
        return int((self.ends - self.starts).sum())

    def overlap(self, other: Runs) -> int:
        """Return the number of pixels that are set in both."""
        if not len(self.starts) or not len(other.starts):
            return 0
        before = np.concatenate(([0], np.cumsum(other.ends - other.starts)))

        def below(pixel: NDArray[np.int64]) -> NDArray[np.int64]:
            run = np.searchsorted(other.starts, pixel, side="right") - 1
            inside = np.minimum(pixel, other.ends[run]) - other.starts[run]
            return np.where(run < 0, 0, before[run] + inside)

        return int((below(self.ends) - below(self.starts)).sum())

    def mask(self, size: int) -> NDArray[np.bool_]:
        """Return the flat mask, shape ``(size,)``."""
        steps = np.zeros(size + 1, dtype=np.int8)
        steps[self.starts] += 1
        steps[self.ends] -= 1
        return np.cumsum(steps[:size], dtype=np.int8).astype(np.bool_)


def _whole_numbers(tokens: Sequence[str]) -> NDArray[np.int64]:
    try:
        values = list(map(int, tokens))
    except ValueError:
        for token in tokens:
            try:
                int(token)
            except ValueError:
                raise ValueError(f"{say(token)} is no whole number") from None
        raise
    try:
        return np.array(values, dtype=np.int64).clip(-_FAR, _FAR)
    except OverflowError:
        return np.array([min(max(value, -_FAR), _FAR) for value in values], dtype=np.int64)


def parse_runs(text: str, size: int) -> Runs:
    """Read the text of one mask as MLE-bench does.

    What lies beyond the picture is cut off. One length for two starts counts for both, and a start alone sets nothing.

    Args:
        text: Starts and lengths in turn, between spaces; blank for a mask with no pixel.
        size: Pixels of the picture.

    Raises:
        ValueError: Half a sentence that says what is wrong: no numbers, not positive, not ascending, overlapping.
    """
    numbers = _whole_numbers(text.split())
    starts, lengths = numbers[0::2], numbers[1::2]
    back = np.flatnonzero(starts[1:] < starts[:-1])
    if back.size:
        raise ValueError(f"the run at {starts[back[0] + 1]} follows the one at {starts[back[0]]}, in descending order")
    if (starts < 1).any():
        raise ValueError(f"the start {starts[starts < 1][0]} is less than 1")
    if (lengths < 1).any():
        raise ValueError(f"the length {lengths[lengths < 1][0]} is less than 1")
    if len(starts) != len(lengths):
        if len(lengths) > 1:
            raise ValueError(f"it has {len(numbers):,} numbers, an odd count")
        starts, lengths = starts[: 2 * len(lengths)], np.repeat(lengths, 2)
    first = np.minimum(starts - 1, size)
    ends = np.minimum(starts - 1 + lengths, size)
    over = np.flatnonzero((first[1:] < ends[:-1]) & (first[1:] < size))
    if over.size:
        raise ValueError(f"the run at {starts[over[0] + 1]} overlaps the one at {starts[over[0]]}")
    kept = first < size
    return Runs(first[kept], ends[kept])


def read_runs(
    cells: Iterable[object], column: str, sizes: Iterable[int], *, allow_empty: bool = False, none: str = ""
) -> list[Runs]:
    """Read a column of masks.

    Args:
        cells: The cells of the submission, in its own order.
        column: Its name, for messages.
        sizes: Pixels of the picture of each cell; reading stops with the shorter of the two.
        allow_empty: Whether an empty cell is a mask with no pixel.
        none: Text that stands for a mask with no pixel.

    Raises:
        InvalidSubmission: A cell holds no text, or no run lengths.
    """
    found = []
    for row, (cell, size) in enumerate(zip(cells, sizes, strict=False), start=1):
        if not isinstance(cell, str):
            if not (allow_empty and say(cell) == "an empty cell"):
                raise InvalidSubmission(
                    f"Column {column!r}, row {row}: {say(cell)}; expected text with pairs of start and length."
                )
            cell = ""
        try:
            found.append(parse_runs("" if cell == none else cell, size))
        except ValueError as error:
            raise InvalidSubmission(
                f"Column {column!r}, row {row}: {error}; expected ascending, separate runs of positive start and "
                f"length, like '1 3 10 5'."
            ) from None
    return found


def dice(first: Runs, second: Runs, both_empty: float) -> float:
    """Dice coefficient: twice the pixels set in both, by the sum of those set in each."""
    total = first.area + second.area
    return 2 * first.overlap(second) / total if total else both_empty


def encode_runs(mask: NDArray[np.bool_]) -> str:
    """Return the text of a flat mask, shape ``(pixels,)``; "" where nothing is set."""
    steps = np.diff(np.concatenate(([0], mask.astype(np.int8), [0])))
    starts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    return " ".join(map(str, np.stack([starts + 1, ends - starts], axis=1).ravel().tolist()))
