"""The capacity gate: a bound on what is started ahead of the policy, instead of dropping what got too old."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainers.common.admission.base import Admission, Taken
from trainers.common.admission.lookahead import AutoLookahead

__all__ = ["CapacityGate"]


class CapacityGate(Admission):
    """At most ``(updates + 1 + lookahead) * B`` valid actions are ever started; nothing is dropped.

    So executors have ``lookahead`` batches of work while the learner is busy, and the number of untrained actions is
    bounded.

    Args:
        batch_size: B.
        lookahead: Batches started ahead of the policy's version; 0 is synchronous.
        total: Updates of the whole run, None without end; nothing is started that none of them would train.
        auto: Chooses the look-ahead from the durations instead.
    """

    def __init__(
        self, batch_size: int, lookahead: int = 1, total: int | None = None, auto: AutoLookahead | None = None
    ) -> None:
        super().__init__(batch_size)
        if lookahead < 0:
            raise ValueError(f"lookahead must be at least 0, not {lookahead}.")
        self.lookahead = lookahead if auto is None else auto.value
        self.total = total
        self.auto = auto

    @property
    def in_flight_max(self) -> int:
        """(1 + lookahead) * B, with the largest look-ahead that may be chosen."""
        return (1 + (self.lookahead if self.auto is None else self.auto.most)) * self.batch_size

    def wanted(self) -> int:
        """What the gate leaves."""
        batches = self.updates + 1 + self.lookahead
        if self.total is not None:
            batches = min(batches, self.total)
        return max(0, batches * self.batch_size - (self.launched - self.masked))

    def complete(self, ticket: int, *, valid: bool, duration: float | None = None) -> bool:
        """An action ended; its duration tunes the look-ahead."""
        if self.auto is not None and valid and duration is not None:
            self.auto.observe(duration)
        return super().complete(ticket, valid=valid, duration=duration)

    def advance(self) -> Taken:
        """The update is finished; the look-ahead may change."""
        taken = super().advance()
        if self.auto is not None:
            self.auto.tune()
            self.lookahead = self.auto.value
        return taken

    def _take(self, batch: list[int]) -> Taken:
        chosen = set(batch)
        self._waiting = [ticket for ticket in self._waiting if ticket not in chosen]
        return Taken(tuple(batch))

    def state(self) -> dict[str, Any]:
        """JSON-able state."""
        return super().state() | ({} if self.auto is None else {"auto": self.auto.state()})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``."""
        super().restore(state)
        if self.auto is not None and "auto" in state:
            self.auto.restore(state["auto"])
            self.lookahead = self.auto.value
