"""``WallClockLimit``: an episode has so many seconds."""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from mle_gym.suggest import choose

__all__ = ["WallClockLimit"]

_CLOCKS = ("program", "wall")


class WallClockLimit(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Truncates an episode once its time is spent.

    The step that exceeds the limit still counts; ``truncated`` is True after it, unless the episode ended by itself.
    To bound a single program, use ``time_limit`` of the environment.

    Args:
        env: The environment.
        seconds: Time of one episode, above 0.
        clock: ``program`` counts the seconds in which programs ran (``info["duration"]``), so that neither the model's
            thinking nor waiting for cores is charged; ``wall`` counts all the time since ``reset``.
    """

    def __init__(self, env: gym.Env[str, str], seconds: float, clock: str = "program") -> None:
        RecordConstructorArgs.__init__(self, seconds=seconds, clock=clock)
        gym.Wrapper.__init__(self, env)
        if not 0 < seconds < float("inf"):
            raise ValueError(f"WallClockLimit seconds={seconds} has to be a number above 0.")
        self._seconds = float(seconds)
        self._clock = choose("clock", clock, _CLOCKS)
        self._start = time.monotonic()
        self._ran = 0.0

    @property
    def remaining(self) -> float:
        """Seconds left in this episode; 0.0 when it is over."""
        spent = self._ran if self._clock == "program" else time.monotonic() - self._start
        return max(self._seconds - spent, 0.0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode and its clock."""
        self._start = time.monotonic()
        self._ran = 0.0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Step; ``truncated`` once the time is spent."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._ran += info["duration"]
        return obs, reward, terminated, truncated or (not terminated and self.remaining <= 0.0), info
