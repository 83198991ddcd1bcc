"""How far ahead of the policy actions have to start so that no executor waits, read off the durations."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["AutoLookahead"]


class AutoLookahead:
    """The look-ahead as a function of the durations of the last programs, and of nothing else.

    By Little's law a program that runs d seconds is (d / mean d) * (slots / B) updates old when it ends, with all slots
    busy and the learner no bottleneck. The look-ahead is that age, rounded up, for a high quantile of d: work enough
    that no slot waits for the learner, and no action older than slow programs are anyway. It reads no clock, so a run
    that is repeated from its record chooses the same.

    Args:
        slots: Programs that run at once.
        batch_size: B.
        quantile: Of the durations.
        most: Upper bound of the look-ahead; 1 is the lower one, and where it starts.
        window: Durations remembered.
    """

    def __init__(
        self, slots: int, batch_size: int, *, quantile: float = 0.95, most: int = 8, window: int = 512
    ) -> None:
        if slots < 1 or most < 1 or window < 1:
            raise ValueError(f"slots, most and window must be at least 1, not {slots}, {most} and {window}.")
        if not 0 < quantile <= 1:
            raise ValueError(f"The quantile must be in (0, 1], not {quantile}.")
        self.slots = slots
        self.batch_size = batch_size
        self.quantile = quantile
        self.most = most
        self.value = 1
        """The look-ahead, batches."""
        self._durations: deque[float] = deque(maxlen=window)

    def observe(self, duration: float) -> None:
        """A program ended after so many seconds."""
        self._durations.append(duration)

    def tune(self) -> None:
        """Choose again; called once for each update, so that a batch is filled under one value."""
        if len(self._durations) < self.batch_size:
            return
        seconds = np.array(self._durations)
        mean = float(seconds.mean())
        if mean > 0:
            needed = float(np.quantile(seconds, self.quantile)) / mean * self.slots / self.batch_size
            self.value = min(self.most, max(1, math.ceil(needed)))

    def state(self) -> dict[str, Any]:
        """JSON-able state."""
        return {"value": self.value, "durations": list(self._durations)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``."""
        self.value = int(state["value"])
        self._durations = deque((float(value) for value in state["durations"]), maxlen=self._durations.maxlen)
