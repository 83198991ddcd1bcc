"""What ``EnvPool`` answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

__all__ = ["StepResult"]


@dataclass(frozen=True, slots=True)
class StepResult:
    """What came of one ticket."""

    ticket: int
    """As ``send`` returned it; -1 for the result of a reset."""
    env_index: int
    obs: Any
    """What ``step`` (or ``reset``) returned; after an error, the last observation before it."""
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    next_obs: Any
    """What the next action answers: ``obs``, or the new episode's first observation where this one ended."""
    next_info: dict[str, Any] = field(default_factory=dict)
    """``info`` of the auto-reset; empty where there was none."""
    queued: float = math.nan
    """Stamps from ``time.monotonic()``: handed to the pool ..."""
    started: float = math.nan
    """... taken by a worker (nan: never) ..."""
    ended: float = math.nan
    """... answered."""
