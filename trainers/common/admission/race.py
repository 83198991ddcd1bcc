"""Algorithm 1 of the paper: the first completions win."""

from __future__ import annotations

import math
from typing import Literal

from trainers.common.admission.base import Admission, Taken

__all__ = ["Race"]


class Race(Admission):
    """``m * B`` actions in flight, the first ``B`` completions make the batch (arXiv 2509.01684, Algorithm 1).

    Args:
        batch_size: B.
        multiplier: m, at least 1; with 1 the rule is synchronous.
        leftovers: ``keep``: actions that lost the race run on and may win a later one. ``cancel``: they are dropped,
            which starves slow actions (with m = 2 and two equally likely actions, 1 s and 10 s, 3 % of what is
            trained is slow).
    """

    def __init__(self, batch_size: int, multiplier: float = 2.0, leftovers: Literal["keep", "cancel"] = "keep") -> None:
        super().__init__(batch_size)
        if multiplier < 1:
            raise ValueError(f"The multiplier of a race must be at least 1, not {multiplier}.")
        if leftovers not in ("keep", "cancel"):
            raise ValueError(f"leftovers must be 'keep' or 'cancel', not {leftovers!r}.")
        self.multiplier = multiplier
        self.leftovers = leftovers

    @property
    def in_flight_max(self) -> int:
        """ceil(m * B)."""
        return math.ceil(self.multiplier * self.batch_size)

    def wanted(self) -> int:
        """Fill up to m * B; nothing starts during an update, as in Algorithm 1."""
        if self.updating:
            return 0
        return self.in_flight_max - len(self._running) - len(self._waiting)

    def take(self) -> Taken:
        """The first B completions; with ``cancel`` all others are dropped."""
        self._start_update()
        batch, self._waiting = self._waiting[: self.batch_size], self._waiting[self.batch_size :]
        if self.leftovers == "keep":
            return Taken(tuple(batch))
        running, rest = self.running, self.waiting
        self._drop(running, rest)
        return Taken(tuple(batch), running, rest)
