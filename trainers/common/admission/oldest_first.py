"""A capacity gate that trains whatever has finished, the oldest first."""

from __future__ import annotations

from trainers.common.admission.base import Taken
from trainers.common.admission.gate import CapacityGate

__all__ = ["OldestFirst"]


class OldestFirst(CapacityGate):
    """A capacity gate, and of what has finished the oldest-started B make the batch; nothing is ever dropped.

    The age of a single sample is not bounded: a slow one is trained when it ends, with its recorded log-probabilities.
    Executors stay busy when ``lookahead`` is at least slots / B, and a little more for the learner's time.
    """

    def take(self) -> Taken:
        """The B oldest-started of the finished samples."""
        self._start_update()
        return self._take(sorted(self._waiting)[: self.batch_size])
