from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

import mle_gym
from mle_gym.registration import env_spec, register_all
from mle_gym.tasks import get_task, list_tasks, registry

ONE_PIECE = ("hubmap-kidney-segmentation", "vesuvius-challenge-ink-detection")
"""Too few rows of answers to cut."""
IDS = [mle_gym.env_id(task.name) for task in list_tasks()]


def test_every_task_has_an_id() -> None:
    assert len(IDS) >= 8
    assert set(IDS) <= set(gym.registry)
    registered = {env_id for env_id in gym.registry if env_id.startswith("mle_gym/")}
    assert registered == set(IDS)


@pytest.mark.parametrize("env_id", IDS)
def test_specs_are_plain_data(env_id: str) -> None:
    spec = gym.spec(env_id)
    assert isinstance(spec.entry_point, str)
    assert isinstance(spec.vector_entry_point, str)
    assert spec.nondeterministic
    assert spec.max_episode_steps is None
    assert EnvSpec.from_json(spec.to_json()) == spec
    task = get_task(spec.kwargs["task"])
    whole = {"reward_split": "all"} if task.name in ONE_PIECE else {}
    assert json.loads(spec.to_json())["kwargs"] == {"task": task.name, **whole}


def test_made_spec_round_trips_with_arguments() -> None:
    env = gym.make(IDS[0], time_limit=5.0, max_steps=3, require=["time"])
    assert env.spec is not None
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.spec == env.spec
    assert again.unwrapped.config == env.unwrapped.config  # type: ignore[attr-defined]
    assert again.unwrapped.config.max_steps == 3  # type: ignore[attr-defined]
    env.close()
    again.close()


@pytest.mark.parametrize(("higher", "bronze", "threshold"), [(True, 0.8, 0.8), (False, 0.3, -0.3)])
def test_threshold_is_bronze_with_the_rewards_sign(higher: bool, bronze: float, threshold: float) -> None:
    from mle_gym.grading.grade import Thresholds

    thresholds = Thresholds(gold=0.0, silver=0.0, bronze=bronze, median=0.0)
    task = dataclasses.replace(get_task("credit-default"), higher_is_better=higher, thresholds=thresholds)
    assert env_spec(task).reward_threshold == threshold
    assert env_spec(dataclasses.replace(task, thresholds=None)).reward_threshold is None


def test_competitions_have_a_threshold_on_real_data_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLE_GYM_DATA", str(tmp_path))
    task = get_task("nomad2018-predict-transparent-conductors")
    assert env_spec(task).reward_threshold is None
    for part in ("public", "private"):
        (tmp_path / task.name / "prepared" / part).mkdir(parents=True)
    assert env_spec(task).reward_threshold == -0.06582  # bronze; an error, so lower is better


@pytest.fixture
def own_task() -> Iterator[mle_gym.Task]:
    task = dataclasses.replace(get_task("credit-default"), name="my-own-task")
    yield task
    registry._tasks.pop(task.name, None)
    gym.registry.pop(mle_gym.env_id(task.name), None)


def test_own_task(own_task: mle_gym.Task) -> None:
    assert mle_gym.register_task(own_task) == "mle_gym/my-own-task-v0"
    env = gym.make("mle_gym/my-own-task-v0")
    assert env.unwrapped.task is own_task  # type: ignore[attr-defined]
    env.close()
    other = dataclasses.replace(own_task, title="Another")
    with pytest.raises(ValueError, match="registered already"):
        mle_gym.register_task(other)
    mle_gym.register_task(other, replace=True)
    assert gym.make("mle_gym/my-own-task-v0").unwrapped.task is other  # type: ignore[attr-defined]


def test_registering_twice_changes_nothing() -> None:
    before = dict(gym.registry)
    register_all()  # Gymnasium would warn about an id that is overridden, and warnings are errors here.
    assert gym.registry == before


def test_unknown_id_names_a_near_one() -> None:
    with pytest.raises(gym.error.NameNotFound, match="credit-default"):
        gym.make("mle_gym/credit-defualt-v0")
    with pytest.raises(KeyError, match="did you mean credit-default"):
        mle_gym.MLEEnv("credit-defualt")
