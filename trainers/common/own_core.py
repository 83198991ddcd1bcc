"""A core for the learner that no program shares."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from mle_gym.sandbox.cores import CoreLease, available_cores

__all__ = ["OwnCore"]


class OwnCore:
    """Keeps the calling thread's computation and the programs on different cores.

    With fewer slots than cores, one core is the learner's for the whole run. Otherwise the learner is mostly idle, and
    a core kept for it would be too: it then leases one for each computation and gives it back, and the wait for it is
    the rest of one program.

    Create it after the executor: threads inherit the affinity of the thread that makes them.

    Args:
        slots: Programs that run at once.
        patience: Seconds to wait for a core where others hold them all; then the computation shares one.
    """

    def __init__(self, slots: int, patience: float = 10.0) -> None:
        self.patience = patience
        self._everywhere = available_cores()
        self._kept = CoreLease.reserve(1) if slots < len(self._everywhere) else None
        if self._kept is not None:
            _pin(self._kept.cores)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Hold a core."""
        if self._kept is not None or len(self._everywhere) < 2:
            yield
            return
        with self._borrow() as lease:
            _pin(lease.cores)
            try:
                yield
            finally:
                _pin(self._everywhere)

    def _borrow(self) -> CoreLease:
        try:
            return CoreLease.acquire(1, timeout=self.patience)
        except TimeoutError:
            # Leases are not handed out in turn between processes: waiting on could take for ever.
            return CoreLease.acquire(0)

    def close(self) -> None:
        """Give the core back and let the thread run anywhere; idempotent."""
        if self._kept is not None:
            self._kept.release()
            _pin(self._everywhere)
            self._kept = None


def _pin(cores: tuple[int, ...] | list[int]) -> None:
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
