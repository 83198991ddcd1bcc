"""Advantages: rewards made comparable, before any weight."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["RunningMean", "RunningScale", "gae", "leave_one_out", "over_group_std", "shape_advantages"]

Floats = NDArray[np.float64]


def leave_one_out(rewards: ArrayLike, groups: Sequence[Hashable]) -> Floats:
    """Reward minus the mean reward of the *other* samples of the same group; nan for a group of one.

    Equal to (R_i - group mean) * G / (G - 1), the unbiased form of the group-mean baseline (Kool et al. 2019).

    Args:
        rewards: [B].
        groups: B group keys; samples of a group share the very same prompt.

    Returns:
        [B] advantages.
    """
    values = np.asarray(rewards, dtype=np.float64)
    if values.shape != (len(groups),):
        raise ValueError(f"{len(groups)} group keys for rewards of shape {values.shape}.")
    result = np.full(len(values), np.nan)
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    for indices in members.values():
        size = len(indices)
        if size > 1:
            group_rewards = values[indices]
            result[indices] = (group_rewards - group_rewards.mean()) * size / (size - 1)
    return result


def over_group_std(advantages: Floats, rewards: ArrayLike, groups: Sequence[Hashable]) -> Floats:
    """Divide advantages by the standard deviation (n - 1) of the rewards of their group, as GRPO does.

    A group of equal rewards has advantages of 0 and keeps them; the nan of a group of one stays.

    Args:
        advantages: [B] from ``leave_one_out``.
        rewards: [B].
        groups: B group keys.
    """
    values = np.asarray(rewards, dtype=np.float64)
    result = advantages.copy()
    for group in set(groups):
        indices = [index for index, key in enumerate(groups) if key == group]
        spread = float(values[indices].std(ddof=1)) if len(indices) > 1 else 0.0
        if spread > 0:
            result[indices] /= spread
    return result


class RunningMean:
    """Exponential moving average of the reward per key (a task).

    Used as a baseline it must come from earlier batches only: read ``get`` first, then ``update``.

    Args:
        decay: Share of the old mean kept per batch.
    """

    def __init__(self, decay: float = 0.9) -> None:
        if not 0 <= decay < 1:
            raise ValueError(f"decay must be in [0, 1), not {decay}.")
        self.decay = decay
        self._means: dict[str, float] = {}

    def get(self, key: str) -> float | None:
        """Mean of the key, None before its first update."""
        return self._means.get(key)

    def update(self, key: str, values: ArrayLike) -> None:
        """Move towards the mean of ``values``; the first batch sets it."""
        batch_mean = float(np.mean(np.asarray(values, dtype=np.float64)))
        old = self._means.get(key)
        self._means[key] = batch_mean if old is None else self.decay * old + (1 - self.decay) * batch_mean

    def state(self) -> dict[str, float]:
        """JSON-able state."""
        return dict(self._means)

    def restore(self, state: Mapping[str, float]) -> None:
        """Continue from ``state()``."""
        self._means = {key: float(value) for key, value in state.items()}


class RunningScale:
    """Running root mean square of advantages: a scale that does not depend on the batch alone.

    Dividing by a batch's own standard deviation makes the step size random; an average over batches does not.

    Args:
        decay: Share of the old mean square kept per batch.
    """

    def __init__(self, decay: float = 0.9) -> None:
        if not 0 <= decay < 1:
            raise ValueError(f"decay must be in [0, 1), not {decay}.")
        self.decay = decay
        self._square: float | None = None

    def normalise(self, advantages: Floats) -> Floats:
        """Update with this batch, then divide by the root mean square (unchanged while all were zero)."""
        square = float(np.mean(np.square(advantages))) if len(advantages) else 0.0
        self._square = square if self._square is None else self.decay * self._square + (1 - self.decay) * square
        return advantages / np.sqrt(self._square) if self._square > 0 else advantages

    def state(self) -> dict[str, Any]:
        """JSON-able state."""
        return {"square": self._square}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``."""
        self._square = state["square"]


def shape_advantages(advantages: Floats, *, negative_scale: float = 1.0, clip: float | None = None) -> Floats:
    """Scale down the negative advantages, then clip both sides.

    Where one response in twenty is valid, pushing the many failures down moves far more probability than pulling the
    few successes up, and to nowhere in particular; ``negative_scale`` below 1 tempers it.

    Args:
        advantages: [B].
        negative_scale: Factor of negative advantages, in [0, 1].
        clip: Largest absolute value.
    """
    shaped = np.where(advantages < 0, advantages * negative_scale, advantages)
    return shaped if clip is None else np.clip(shaped, -clip, clip)


def gae(
    rewards: ArrayLike,
    values: ArrayLike,
    last_value: ArrayLike,
    ended: ArrayLike,
    *,
    gamma: float = 1.0,
    lam: float = 1.0,
) -> Floats:
    """Generalised advantage estimation (Schulman et al. 2016, Eq. 16) for a critic.

    Args:
        rewards: [T] or [T, N].
        values: Same shape: the critic's value of each state.
        last_value: [] or [N]: value of the state after the last step.
        ended: Same shape as rewards: True where the episode ended *with* this step, so that nothing after it counts.
        gamma: Discount.
        lam: 0 is one-step TD, 1 is return minus value.

    Returns:
        Advantages, same shape; the critic's targets are these plus ``values``.
    """
    reward, value = np.asarray(rewards, dtype=np.float64), np.asarray(values, dtype=np.float64)
    alive = 1.0 - np.asarray(ended, dtype=np.float64)
    if not reward.shape == value.shape == alive.shape:
        raise ValueError(f"Shapes differ: rewards {reward.shape}, values {value.shape}, ended {alive.shape}.")
    result = np.zeros_like(reward)
    following = np.asarray(last_value, dtype=np.float64)
    running = np.zeros_like(following)
    for step in reversed(range(len(reward))):
        delta = reward[step] + gamma * alive[step] * following - value[step]
        running = delta + gamma * lam * alive[step] * running
        result[step] = running
        following = value[step]
    return result
