"""When a run has converged: its smoothed mean reward no longer rises."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

__all__ = ["Convergence"]


class Convergence:
    """Watches the mean reward of the updates (arXiv 2509.01684 trains each task "until the reward converges").

    The smoothed reward is the mean over the last ``window`` updates and is not looked at before there are as many, so
    that a lucky first batch is no bar for later ones. It has improved when it lies more than ``min_gain`` above its
    best value so far.

    Args:
        patience: Updates without improvement after which the run has converged; 0 is never.
        min_gain: How much counts as improvement.
        window: Updates that are averaged.
    """

    def __init__(self, patience: int, min_gain: float = 0.0, window: int = 10) -> None:
        self.patience = patience
        self.min_gain = min_gain
        self._recent: deque[float] = deque(maxlen=window)
        self.best = -math.inf
        """Best smoothed reward that was an improvement."""
        self.waited = 0
        """Updates since."""

    @property
    def smoothed(self) -> float:
        """Mean over the window; nan before it is full."""
        full = len(self._recent) == self._recent.maxlen
        return math.fsum(self._recent) / len(self._recent) if full else math.nan

    @property
    def reached(self) -> bool:
        """Whether the run has converged."""
        return 0 < self.patience <= self.waited

    def update(self, reward: float) -> None:
        """Take in the mean reward of an update."""
        self._recent.append(reward)
        value = self.smoothed
        if math.isnan(value):
            return
        if value > self.best + self.min_gain:
            self.best, self.waited = value, 0
        else:
            self.waited += 1

    def state(self) -> dict[str, Any]:
        """JSON-able state."""
        best = self.best if math.isfinite(self.best) else None
        return {"recent": list(self._recent), "best": best, "waited": self.waited}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``."""
        self._recent.clear()
        self._recent.extend(state["recent"])
        self.best = -math.inf if state["best"] is None else float(state["best"])
        self.waited = int(state["waited"])
