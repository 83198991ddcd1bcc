"""ML-engineering tasks as Gymnasium environments.

Importing the package registers one id for each task; everything heavier is imported when it is first used.

Example:
    >>> import gymnasium as gym
    >>> import mle_gym
    >>> gym.spec("mle_gym/credit-default-v0").kwargs
    {'task': 'credit-default'}
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mle_gym.registration import register_all

if TYPE_CHECKING:
    from mle_gym.attempt import Attempt
    from mle_gym.env import MLEEnv
    from mle_gym.grading.api import grade
    from mle_gym.grading.grade import Grade, InvalidSubmission
    from mle_gym.instrument.base import MILESTONES
    from mle_gym.outcome import Outcome, StepInfo
    from mle_gym.pool import EnvPool, StepResult
    from mle_gym.registration import env_id, register_task
    from mle_gym.response import Response
    from mle_gym.rewards import register_reward
    from mle_gym.spaces import Utf8
    from mle_gym.tasks import Task, TaskData, TaskUnavailable, get_task, list_tasks
    from mle_gym.tasks.mlebench.prepare import prepare
    from mle_gym.vector import MLEVectorEnv

__version__ = "0.1.0"

__all__ = [
    "MILESTONES",
    "Attempt",
    "EnvPool",
    "Grade",
    "InvalidSubmission",
    "MLEEnv",
    "MLEVectorEnv",
    "Outcome",
    "Response",
    "StepInfo",
    "StepResult",
    "Task",
    "TaskData",
    "TaskUnavailable",
    "Utf8",
    "env_id",
    "get_task",
    "grade",
    "list_tasks",
    "prepare",
    "register_reward",
    "register_task",
]

_HOMES = {
    "MILESTONES": "instrument.base",
    "Attempt": "attempt",
    "EnvPool": "pool",
    "Grade": "grading.grade",
    "InvalidSubmission": "grading.grade",
    "MLEEnv": "env",
    "MLEVectorEnv": "vector",
    "Outcome": "outcome",
    "Response": "response",
    "StepInfo": "outcome",
    "StepResult": "pool",
    "Task": "tasks",
    "TaskData": "tasks",
    "TaskUnavailable": "tasks",
    "Utf8": "spaces",
    "env_id": "registration",
    "get_task": "tasks",
    "grade": "grading.api",
    "list_tasks": "tasks",
    "prepare": "tasks.mlebench.prepare",
    "register_reward": "rewards",
    "register_task": "registration",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mle_gym' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"mle_gym.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


register_all()
