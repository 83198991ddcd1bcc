"""A bandit with text spaces: the first letter of the action is the arm; arms differ in reward and in run time."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import gymnasium as gym

from mle_gym.info import empty_info
from mle_gym.spaces import Utf8

ARMS = {"a": (0.2, 0.0), "b": (-1.0, 0.0), "c": (1.0, 0.01), "d": (-1.0, 0.002)}
"""Arm -> reward, seconds."""


class Bandit(gym.Env[str, str]):
    """One step per episode.

    Args:
        scale: Stretches the seconds.
        fail: Makes every step an infrastructure failure.
        hang: Seconds that every step sleeps.
        prompt: What is shown.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, scale: float = 1.0, fail: bool = False, hang: float = 0.0, prompt: str = "pull") -> None:
        self.action_space = Utf8(1000)
        self.observation_space = Utf8(1000)
        self.scale = scale
        self.fail = fail
        self.hang = hang
        self.prompt = prompt

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return self.prompt, dict(empty_info())

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        arm = action[:1]
        reward, seconds = ARMS.get(arm, (-2.0, 0.0))
        duration = seconds * self.scale
        time.sleep(self.hang or duration)
        info = dict(empty_info())
        info |= {"duration": duration, "outcome": "scored", "score": reward, "program": arm}
        if arm not in ARMS:
            info |= {"outcome": "no_program", "score": float("nan")}
        if self.fail:
            info |= {"outcome": "infrastructure_error", "reward_valid": False, "message": "The machine is on fire."}
            reward = 0.0
        return self.prompt, reward, True, False, info


gym.register("Bandit-v0", entry_point="tests.trainers.bandit:Bandit", nondeterministic=False, order_enforce=False)
gym.register("SlowBandit-v0", entry_point="tests.trainers.bandit:Bandit", kwargs={"scale": 4.0}, order_enforce=False)
