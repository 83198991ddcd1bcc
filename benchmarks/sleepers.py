"""Programs that sleep as long as a trace says: the same load for every trainer, whatever its policy writes."""

from __future__ import annotations

import heapq
import threading
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import gymnasium as gym
import numpy as np

import mle_gym  # noqa: F401  (registers the ids)

__all__ = ["ENV_ID", "SleepingPrograms", "Trace", "draw_trace", "ideal_completions", "play"]

ENV_ID = "benchmarks.sleepers:SleepingPrograms-v0"
"""For ``gym.make`` and ``env.ids``."""


@dataclass
class Trace:
    """Lengths of programs in the order of their start, and when each ran."""

    seconds: Sequence[float]
    runs: list[tuple[float, float]] = field(default_factory=list)
    """Begin and end of each program that has ended, ``time.monotonic()``."""
    _next: count[int] = field(default_factory=count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> float:
        """Return the next length; after the last the first one follows."""
        with self._lock:
            return self.seconds[next(self._next) % len(self.seconds)]

    def ended(self, begin: float, end: float) -> None:
        """Note a program that has ended."""
        with self._lock:
            self.runs.append((begin, end))


_playing = Trace([1.0])


def play(trace: Trace) -> None:
    """Let all environments of this process take their lengths from ``trace`` from now on."""
    global _playing
    _playing = trace


def draw_trace(sigma: float, mean: float, size: int, seed: int) -> list[float]:
    """Draw independent log-normal seconds of this mean; ``sigma`` is the deviation of their logarithm."""
    draws = np.random.default_rng(seed).lognormal(np.log(mean) - sigma**2 / 2, sigma, size)
    return [float(value) for value in draws]


def ideal_completions(seconds: Sequence[float], slots: int, until: float) -> int:
    """Count the programs that slots which never wait have completed by then: the physical limit of a finite run.

    Args:
        seconds: Lengths in the order of start; repeated when they run out.
        slots: Programs that run at once.
        until: Seconds.
    """
    ends = [0.0] * slots
    done = 0
    for number in count():
        free = heapq.heappop(ends)
        if free > until:
            # Whatever starts now ends later; so does all that was started and not counted.
            return done
        end = free + seconds[number % len(seconds)]
        done += end <= until
        heapq.heappush(ends, end)
    raise AssertionError("unreachable")


class SleepingPrograms(gym.Wrapper[str, str, str, str]):
    """Runs a sleeping program, sandboxed and graded like any other, in place of the one that was written.

    The reward is a number in [0, 1) that depends on the text alone: gradients are real and lead nowhere, so that the
    responses stay as long as they were.
    """

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Sleep; ``info`` is that of the sleeping program."""
        trace, length = _playing, _playing.take()
        program = f"I sleep.\n```python\nimport time\ntime.sleep({length:.4f})\n```\n"
        observation, _, terminated, truncated, info = self.env.step(program)
        end = time.monotonic() - float(info["grade_time"])
        trace.ended(end - float(info["duration"]), end)
        return observation, zlib.crc32(action.encode()) / 2**32, terminated, truncated, info


def _make(**kwargs: Any) -> gym.Env[str, str]:
    # Unpinned: sleepers need no core. No limit below the longest sleep.
    chosen = {"cores": 0, "time_limit": 86_400.0, "token_budget": 130} | kwargs
    return SleepingPrograms(gym.make("mle_gym/credit-default-v0", **chosen))


gym.register("SleepingPrograms-v0", entry_point=_make, nondeterministic=True, order_enforce=False)
