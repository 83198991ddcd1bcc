"""``SelfImprovement``: some episodes begin with an earlier valid solution to improve."""

from __future__ import annotations

import math
import threading
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from mle_gym.attempt import Attempt
from mle_gym.outcome import Outcome
from mle_gym.suggest import choose

__all__ = ["Archive", "SelfImprovement"]

_PICKS = ("any", "best", "last")


class Archive:
    """The best valid solutions of a task, and the last one; may be shared by environments and threads.

    Args:
        capacity: Solutions kept, the best first.
        higher_is_better: Direction of the scores; None: taken from the first environment that uses the archive.
    """

    def __init__(self, capacity: int = 10, *, higher_is_better: bool | None = None) -> None:
        if capacity < 1:
            raise ValueError(f"Archive capacity={capacity} has to be at least 1.")
        self.capacity = capacity
        self.higher_is_better = higher_is_better
        self._lock = threading.Lock()
        self._best: list[Attempt] = []
        self._last: Attempt | None = None

    def __len__(self) -> int:
        return len(self._best)

    @property
    def best(self) -> tuple[Attempt, ...]:
        """The best solutions, best first; among equals the earlier one comes first. No program is in it twice."""
        with self._lock:
            return tuple(self._best)

    @property
    def last(self) -> Attempt | None:
        """The solution added last, however good."""
        return self._last

    def add(self, attempt: Attempt) -> None:
        """Take in a valid solution.

        Raises:
            ValueError: It has no score.
        """
        if math.isnan(attempt.score):
            raise ValueError("An archive takes valid solutions only; this one has no score.")
        sign = -1.0 if self.higher_is_better is False else 1.0
        with self._lock:
            self._last = attempt
            # Programs draw random numbers, so the same one may come again with another score: the first is kept.
            if all(attempt.program != other.program for other in self._best):
                self._best.append(attempt)
                self._best.sort(key=lambda kept: -sign * kept.score)
                del self._best[self.capacity :]

    def pick(self, rng: np.random.Generator, how: str = "any") -> Attempt | None:
        """Return a solution: one of the best at random (``any``), the ``best`` or the ``last``; None while empty."""
        with self._lock:
            if not self._best:
                return None
            if how == "any":
                return self._best[int(rng.integers(len(self._best)))]
            return self._best[0] if how == "best" else self._last

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()


class SelfImprovement(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Keeps valid solutions and, with some probability, begins an episode with one of them to improve.

    The two kinds of prompt, solve and improve, are those of arXiv 2509.01684, which mixes them half and half while
    training. Failed programs are never shown. While the archive is empty, every episode is a first attempt.

    ``info`` gains no key; which prompt was given is in :attr:`improving`. ``reset(options={"previous": ...})`` goes
    before the draw.

    Args:
        env: The environment.
        probability: Of an improve prompt, in [0, 1].
        capacity: Of an archive of its own.
        pick: Which solution is shown: ``any`` of the best, the ``best`` or the ``last``.
        archive: An archive shared with other environments of the same task, instead of one of its own. It is not part
            of the spec: an environment rebuilt from that begins with an empty one.
    """

    def __init__(
        self,
        env: gym.Env[str, str],
        probability: float = 0.5,
        capacity: int = 10,
        pick: str = "any",
        archive: Archive | None = None,
    ) -> None:
        RecordConstructorArgs.__init__(self, probability=probability, capacity=capacity, pick=pick)
        gym.Wrapper.__init__(self, env)
        if not 0.0 <= probability <= 1.0:
            raise ValueError(f"SelfImprovement probability={probability} has to lie in [0, 1].")
        self._probability = float(probability)
        self._pick = choose("pick", pick, _PICKS)
        self.archive = Archive(capacity) if archive is None else archive
        higher = bool(env.get_wrapper_attr("task").higher_is_better)
        if self.archive.higher_is_better is None:
            self.archive.higher_is_better = higher
        elif self.archive.higher_is_better != higher:
            raise ValueError("The shared archive ranks scores the other way; share it among one task's environments.")
        self.improving = False
        """Whether this episode began with an improve prompt."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode, with an earlier solution or without; the draw comes from ``np_random``."""
        options = dict(options or {})
        if "previous" in options:
            self.improving = True
            return self.env.reset(seed=seed, options=options)
        observation, info = self.env.reset(seed=seed, options=options)
        self.improving = False
        if self.np_random.random() < self._probability:
            chosen = self.archive.pick(self.np_random, self._pick)
            if chosen is not None:
                self.improving = True
                observation = self.env.get_wrapper_attr("improve_from")(chosen)
        return observation, info

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Step, and keep the solution if it is valid."""
        result = self.env.step(action)
        info = result[4]
        if info["outcome"] == Outcome.SCORED:
            self.archive.add(
                Attempt(
                    program=info["program"],
                    plan=info["plan"],
                    terminal_output=info["terminal_output"],
                    score=info["score"],
                )
            )
        return result
