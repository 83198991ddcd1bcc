"""A bound on every sample's age, kept by throwing away what exceeds it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from trainers.common.admission.base import Admission, Taken

__all__ = ["DropStale"]


class DropStale(Admission):
    """``m * B`` actions always in flight; a sample more than ``max_lag`` updates old is dropped, for comparison.

    What is slow is old when it ends, so it is what gets dropped: with executors saturated, everything that runs longer
    than about (max_lag + 1) * B * mean duration / slots seconds is never trained. Many trainers do this by default.

    Args:
        batch_size: B.
        multiplier: m, at least 1.
        max_lag: Largest age of a trained sample, in updates.
        leftovers: ``keep``: a program that has become too old runs to its end, for nothing. ``cancel``: it is ended,
            which frees its executor.
    """

    safe_when: ClassVar[Literal["finished", "taken"]] = "taken"

    def __init__(
        self,
        batch_size: int,
        multiplier: float = 2.0,
        max_lag: int = 4,
        leftovers: Literal["keep", "cancel"] = "keep",
    ) -> None:
        super().__init__(batch_size)
        if multiplier < 1:
            raise ValueError(f"multiplier must be at least 1, not {multiplier}.")
        if max_lag < 0:
            raise ValueError(f"max_lag must be at least 0, not {max_lag}.")
        if leftovers not in ("keep", "cancel"):
            raise ValueError(f"leftovers must be 'keep' or 'cancel', not {leftovers!r}.")
        self.multiplier = multiplier
        self.max_lag = max_lag
        self.leftovers = leftovers
        self._versions: dict[int, int] = {}

    @property
    def in_flight_max(self) -> int:
        """ceil(m * B)."""
        return math.ceil(self.multiplier * self.batch_size)

    def wanted(self) -> int:
        """Fill up to m * B, also during an update."""
        return self.in_flight_max - len(self._running) - len(self._waiting)

    def launch(self, ticket: int) -> None:
        """An action of the current version started."""
        super().launch(ticket)
        self._versions[ticket] = self.updates

    def complete(self, ticket: int, *, valid: bool, duration: float | None = None) -> bool:
        """An action ended; none that runs is too old."""
        kept = super().complete(ticket, valid=valid, duration=duration)
        if not kept:
            self._versions.pop(ticket, None)
        return kept

    def take(self) -> Taken:
        """The first B completions; none of them is too old."""
        self._start_update()
        batch, self._waiting = self._waiting[: self.batch_size], self._waiting[self.batch_size :]
        for ticket in batch:
            del self._versions[ticket]
        return Taken(tuple(batch))

    def advance(self) -> Taken:
        """The update is finished: what is too old for the next one goes."""
        super().advance()
        waiting = tuple(ticket for ticket in self._waiting if self._stale(ticket))
        running = tuple(ticket for ticket in self._running if self._stale(ticket))
        self._drop(running, waiting)
        for ticket in (*waiting, *running):
            del self._versions[ticket]
        return Taken((), running, waiting) if self.leftovers == "cancel" else Taken((), (), waiting, running)

    def state(self) -> dict[str, Any]:
        """JSON-able state."""
        return super().state() | {"versions": [[ticket, version] for ticket, version in self._versions.items()]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``."""
        super().restore(state)
        self._versions = {int(ticket): int(version) for ticket, version in state["versions"]}

    def _stale(self, ticket: int) -> bool:
        return self.updates - self._versions[ticket] > self.max_lag
