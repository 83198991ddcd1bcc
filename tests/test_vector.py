from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

import mle_gym
from mle_gym.outcome import StepInfo
from mle_gym.vector import MLEVectorEnv
from tests.envs.processes import descendants
from tests.envs.programs import COPY, answer
from tests.envs.schema import TYPES, check_info

ID = "mle_gym/credit-default-v0"
OTHER = "mle_gym/word-sentiment-v0"
MAKE = partial(gym.make, ID, cores=0)
STEPS = 3


def _ours() -> VectorEnv[Any, Any, Any]:
    return gym.make_vec(ID, num_envs=2, cores=0)


def _sync() -> VectorEnv[Any, Any, Any]:
    return SyncVectorEnv([MAKE] * 2, autoreset_mode=AutoresetMode.SAME_STEP)


def _async() -> VectorEnv[Any, Any, Any]:
    return AsyncVectorEnv([MAKE] * 2, shared_memory=False, autoreset_mode=AutoresetMode.SAME_STEP)


MODES = {"ours": _ours, "sync": _sync, "async": _async}


def _unstack(infos: dict[str, Any], index: int) -> StepInfo:
    """One environment's info out of the stacked ones, in Python's types."""
    info = {}
    for key in TYPES:
        assert infos[f"_{key}"][index]
        value = infos[key][index]
        info[key] = value.item() if isinstance(value, np.generic) else value
    return info  # type: ignore[return-value]


@pytest.mark.parametrize("mode", MODES)
def test_no_program_is_thrown_away(mode: str) -> None:
    own = MAKE()
    own.reset(seed=0)
    own.step(answer(COPY))
    helpers = descendants()
    envs = MODES[mode]()
    observations, _ = envs.reset(seed=0)
    assert observations in envs.observation_space
    printed = []
    for step in range(STEPS):
        actions = tuple(answer(f"print('ran {step}.{index}')\n{COPY}") for index in range(2))
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        assert isinstance(observations, tuple)
        assert all(text.startswith("Solve this") for text in observations)
        assert rewards.tolist() == [0.5, 0.5]
        assert terminated.tolist() == [True, True]
        assert truncated.tolist() == [False, False]
        for index in range(2):
            final = _unstack(infos["final_info"], index)
            check_info(final)
            printed.append(final["terminal_output"])
            assert f"ran {step}.{index}" in infos["final_obs"][index]
            check_info(_unstack(infos, index), reset=True)
    assert printed == [f"ran {step}.{index}" for step in range(STEPS) for index in range(2)]
    envs.close()
    # Forked workers leave their parent's sandbox alone.
    assert helpers <= descendants()
    own.close()


def test_gymnasiums_default_throws_every_second_program_away() -> None:
    # Why the specs name a vector environment of their own.
    envs = SyncVectorEnv([MAKE])
    envs.reset(seed=0)
    outcomes = [envs.step((answer(COPY),))[4]["outcome"][0] for _ in range(4)]
    assert outcomes == ["scored", "", "scored", ""]
    envs.close()


@pytest.mark.parametrize("mode", ["ours", "sync", pytest.param("async", marks=pytest.mark.slow)])
def test_infos_of_different_outcomes_stack_without_corruption(mode: str) -> None:
    envs = MODES[mode]()
    envs.reset(seed=0)
    programs = ("raise ValueError('no')", COPY)
    single = []
    for program in programs:
        env = MAKE()
        env.reset(seed=0)
        single.append(env.step(answer(program))[4])
        env.close()
    infos = envs.step(tuple(answer(program) for program in programs))[4]["final_info"]
    for index, alone in enumerate(single):
        stacked = _unstack(infos, index)
        check_info(stacked)
        for key in ("outcome", "score", "partial_credit", "plan", "program", "message", "reward_valid", "data"):
            assert stacked[key] == alone[key] or (stacked[key] != stacked[key] and alone[key] != alone[key]), key  # type: ignore[literal-required]
        assert stacked["milestones"].tolist() == alone["milestones"].tolist()
    assert infos["score"].dtype == np.float64
    assert infos["reward_valid"].dtype == np.bool_
    envs.close()


def test_ours_is_what_make_vec_makes() -> None:
    envs = gym.make_vec(ID, num_envs=3, token_budget=200)
    assert isinstance(envs, MLEVectorEnv)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    assert envs.single_action_space == envs.envs[0].action_space
    assert len(envs.action_space.sample()) == 3
    observations, _ = envs.reset(seed=5)
    assert all(len(text) <= 600 for text in observations)
    assert envs.np_random_seed == (5, 6, 7)
    assert len(envs.np_random) == 3
    assert envs.spec is not None
    again = gym.make_vec(envs.spec)
    assert again.num_envs == 3
    again.close()
    envs.close()
    envs.close()


def test_seeds() -> None:
    envs: Any = gym.make_vec(ID, num_envs=2, cores=0)
    show = answer("import os\nprint(os.environ['MLE_SEED'])")
    for seed, expected in ((3, ["3", "4"]), ([8, 8], ["8", "8"])):
        envs.reset(seed=seed)
        assert list(envs.step((show, show))[4]["final_info"]["terminal_output"]) == expected
    with pytest.raises(ValueError, match="There are 1 seeds for 2 environments"):
        envs.reset(seed=[1])
    with pytest.raises(ValueError, match="takes 2 texts"):
        envs.step((show,))
    with pytest.raises(ValueError, match="takes 2 texts"):
        envs.step(show)
    envs.close()


def test_programs_run_side_by_side() -> None:
    envs = gym.make_vec(ID, num_envs=4, cores=0)
    envs.reset(seed=0)
    infos = envs.step((answer(f"import time\ntime.sleep(1.0)\n{COPY}"),) * 4)[4]["final_info"]
    assert infos["duration"].min() >= 1.0
    envs.close()


def test_episodes_of_several_programs_end_apart() -> None:
    envs = gym.make_vec(ID, num_envs=2, cores=0, max_steps=2)
    envs.reset(seed=0)
    _, _, terminated, _, infos = envs.step(("words", answer(COPY)))
    assert terminated.tolist() == [False, False]
    assert "final_info" not in infos
    assert infos["outcome"].tolist() == ["no_program", "scored"]
    observations, _, terminated, _, infos = envs.step(("words", "words"))
    assert terminated.tolist() == [True, True]
    assert infos["final_info"]["outcome"].tolist() == ["no_program", "no_program"]
    assert all(text.startswith("Solve this") for text in observations)
    envs.close()


def test_render_and_call() -> None:
    envs = gym.make_vec(ID, num_envs=2, render_mode="ansi")
    envs.reset(seed=0)
    frames = envs.render()
    assert frames is not None
    assert [str(frame).strip() for frame in frames] == ["credit-default: a new episode, data offline"] * 2
    assert [task.name for task in envs.call("task")] == ["credit-default"] * 2  # type: ignore[attr-defined]
    envs.close()


def test_a_lost_environment_does_not_shift_the_others() -> None:
    envs = MLEVectorEnv(2, task="credit-default", cores=0)
    envs.reset(seed=0)
    lost, envs._pool._envs[0] = envs._pool._envs[0], None
    assert lost is not None
    lost.close()
    with pytest.raises(RuntimeError, match="Environment 0 failed and could not be built anew; call reset"):
        envs.call("task")
    envs.reset(seed=0)
    assert len(envs.envs) == 2
    envs.close()


def test_tasks_mix_in_one_vector_environment() -> None:
    envs = SyncVectorEnv([MAKE, partial(gym.make, OTHER, cores=0)], autoreset_mode=AutoresetMode.SAME_STEP)
    observations, _ = envs.reset(seed=0)
    titles = [mle_gym.get_task(name).title for name in ("credit-default", "word-sentiment")]
    assert [title in text for title, text in zip(titles, observations, strict=True)] == [True, True]
    infos = envs.step((answer(COPY), answer(COPY)))[4]["final_info"]
    assert infos["outcome"].tolist() == ["scored", "scored"]
    envs.close()


def test_shared_memory_is_refused_loudly() -> None:
    with pytest.raises(ValueError, match="shared_memory=False"):
        AsyncVectorEnv([MAKE], shared_memory=True)
