"""How many failures of the infrastructure a run puts up with."""

from __future__ import annotations

from collections import deque

__all__ = ["FailureBudget", "InfrastructureFailed"]


class InfrastructureFailed(RuntimeError):
    """Too many executions failed for reasons that are not the program's."""


class FailureBudget:
    """Counts masked samples: in a row, and their share of the last ones.

    A machine that fails now and then costs samples. One that keeps failing costs the run its meaning, because what is
    left is no longer what the policy wrote: only the programs that a bad machine can run are trained.

    Args:
        in_a_row: As many masked samples in a row spend the budget.
        window: Samples of which the share is taken; nothing is judged before so many have come.
        share: A larger share of masked samples spends the budget; 1 is never exceeded.
    """

    def __init__(self, in_a_row: int, window: int, share: float) -> None:
        self.in_a_row = in_a_row
        self.share = share
        self._last: deque[bool] = deque(maxlen=window)
        self._row = 0
        self._spent = ""

    def add(self, *, masked: bool, message: str = "") -> None:
        """A sample has come.

        Args:
            masked: Whether the infrastructure failed it, after all attempts.
            message: What it said.
        """
        self._last.append(masked)
        self._row = self._row + 1 if masked else 0
        failed, window = sum(self._last), self._last.maxlen or 0
        if self._spent:
            return
        if self._row >= self.in_a_row:
            counted = f"{self._row} executions in a row failed"
        elif len(self._last) == window and failed > self.share * window:
            counted = f"{failed} of the last {window} executions failed"
        else:
            return
        self._spent = (
            f"{counted} for reasons that are not the program's; the last one says: {message.strip() or 'nothing.'}"
        )

    def check(self) -> None:
        """Raise when the budget is spent.

        Raises:
            InfrastructureFailed: It is; the message says how and what failed last.
        """
        if self._spent:
            raise InfrastructureFailed(self._spent)
