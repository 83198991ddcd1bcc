"""A capacity gate that trains actions in the order in which they were started."""

from __future__ import annotations

from trainers.common.admission.base import Taken
from trainers.common.admission.gate import CapacityGate

__all__ = ["InOrder"]


class InOrder(CapacityGate):
    """A capacity gate, and the oldest-started B make the batch, finished or not: the learner waits for them.

    Nothing is dropped, no batch depends on how long programs take, and no sample is older than ``lookahead`` updates.
    The price is the wait: executors stay busy only when ``lookahead`` is at least about
    (longest duration / mean duration) * (slots / B). A masked action loses its turn to the next one.
    """

    def ready(self) -> bool:
        """True when the B oldest of all untrained actions have finished."""
        if self.updating or len(self._waiting) < self.batch_size:
            return False
        last = sorted(self._waiting)[self.batch_size - 1]
        return min(self._running, default=last + 1) > last

    def take(self) -> Taken:
        """The B oldest."""
        self._start_update()
        return self._take(sorted(self._waiting)[: self.batch_size])
