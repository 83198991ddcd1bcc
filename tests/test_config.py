from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

from mle_gym.config import EnvConfig
from mle_gym.tasks import get_task


def test_defaults_are_jsonable() -> None:
    fields = dataclasses.asdict(EnvConfig())
    assert EnvConfig(**json.loads(json.dumps(fields))) == EnvConfig()


@pytest.mark.parametrize(
    ("given", "kind", "sentence"),
    [
        ({"data": "real"}, ValueError, "data='real' is not known"),
        ({"data": "preparde"}, ValueError, "did you mean 'prepared'"),
        ({"reward_split": "pubic"}, ValueError, "did you mean 'public'"),
        ({"reward": "medals"}, ValueError, "did you mean 'medal'"),
        ({"reward": 3}, TypeError, "reward=3"),
        ({"render_mode": "rgb_array"}, ValueError, "Choices: human, ansi"),
        ({"sandbox": ""}, TypeError, "sandbox=''"),
        ({"instrumenter": None}, TypeError, "instrumenter=None"),
        ({"cores": -1}, ValueError, "cores=-1 is too small; give at least 0"),
        ({"cores": 1.5}, TypeError, "cores=1.5 has to be a whole number"),
        ({"cores": True}, TypeError, "cores=True"),
        ({"gpus": -2}, ValueError, "gpus=-2"),
        ({"program_seed": -1}, ValueError, "program_seed=-1 is too small; give at least 0"),
        ({"max_steps": 0}, ValueError, "max_steps=0 is too small; give at least 1"),
        ({"token_budget": 10}, ValueError, "token_budget=10 is too small; give at least 64"),
        ({"token_budget": 10**6}, ValueError, "token_budget=1000000 is about 3000000 characters"),
        ({"memory_mb": 0}, ValueError, "memory_mb=0"),
        ({"time_limit": 0}, ValueError, "time_limit=0"),
        ({"time_limit": math.inf}, ValueError, "time_limit=inf"),
        ({"time_limit": "60"}, ValueError, "time_limit='60'"),
        ({"time_limit": 3e6}, ValueError, "too long"),
        ({"allow_unsafe": 1}, TypeError, "allow_unsafe=1"),
        ({"require": "network"}, TypeError, "require='network' has to be a list"),
        ({"require": [1]}, TypeError, "has to be a list"),
        ({"data_dir": 3}, TypeError, "data_dir=3"),
        ({"python": ""}, TypeError, "python=''"),
    ],
)
def test_bad_values_are_named(given: dict[str, Any], kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        EnvConfig(**given)


def test_paths_become_text() -> None:
    assert EnvConfig(data_dir=Path("/data")).data_dir == "/data"  # type: ignore[arg-type]


def test_limits_come_from_arguments_then_the_task_then_defaults() -> None:
    task = get_task("credit-default")
    suggested = dataclasses.replace(task, limits={"time": 300.0, "memory_mb": 4096, "cores": 8, "gpus": 1})
    plain = dataclasses.replace(task, limits={})
    assert EnvConfig(time_limit=5, memory_mb=512, cores=2).limits(suggested).time == 5.0
    assert EnvConfig().limits(suggested).memory_mb == 4096
    assert EnvConfig().limits(suggested).time == 300.0
    assert EnvConfig().limits(plain).time == 60.0
    assert EnvConfig(cores=0).limits(plain).cores == 0
    assert (EnvConfig().limits(suggested).cores, EnvConfig().limits(suggested).gpus) == (8, 1)
    assert (EnvConfig(cores=0, gpus=0).limits(suggested).cores, EnvConfig(gpus=0).limits(suggested).gpus) == (0, 0)
    assert (EnvConfig().limits(plain).cores, EnvConfig().limits(plain).gpus) == (1, 0)
