from __future__ import annotations

import time
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

from mle_gym.wrappers import WallClockLimit
from tests.envs.programs import sleeper

ID = "mle_gym/credit-default-v0"


def _make(seconds: float, clock: str = "program", **kwargs: Any) -> WallClockLimit:
    return WallClockLimit(gym.make(ID, cores=0, max_steps=10, **kwargs), seconds, clock)


def test_program_time_is_spent_step_by_step() -> None:
    env = _make(1.0)
    env.reset(seed=0)
    spent = []
    for _ in range(2):
        assert env.remaining > 0.0
        _, reward, terminated, truncated, info = env.step(sleeper(0.6))
        assert reward == 0.5  # The step that exceeds the limit still counts.
        spent.append((terminated, truncated))
        assert info["duration"] >= 0.6
    assert spent == [(False, False), (False, True)]
    assert env.remaining == 0.0
    env.reset()
    assert env.remaining == 1.0
    env.close()


def test_thinking_is_not_charged_on_the_program_clock() -> None:
    for clock, expected in (("program", False), ("wall", True)):
        env = _make(0.3, clock)
        env.reset(seed=0)
        time.sleep(0.4)
        assert env.step("words")[3] is expected
        env.close()


def test_an_episode_that_ends_by_itself_is_not_truncated() -> None:
    env = WallClockLimit(gym.make(ID, cores=0), 0.1)
    env.reset(seed=0)
    *_, terminated, truncated, _ = env.step(sleeper(0.3))
    assert (terminated, truncated) == (True, False)
    env.close()


def test_spec_rebuilds_the_wrapper() -> None:
    env = _make(2.5, "wall")
    assert env.spec is not None
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, WallClockLimit)
    again.reset()
    assert 2.0 < again.remaining <= 2.5
    assert again.spec == env.spec
    env.close()
    again.close()


def test_bad_arguments() -> None:
    for seconds in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="has to be a number above 0"):
            _make(seconds)
    with pytest.raises(ValueError, match="clock='cpu' is not known"):
        _make(1.0, "cpu")
