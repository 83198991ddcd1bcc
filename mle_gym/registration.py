"""Task table -> Gymnasium ids."""

from __future__ import annotations

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, registry

from mle_gym import tasks
from mle_gym.tasks.mlebench.task import CompetitionTask, find_prepared
from mle_gym.tasks.task import Task

__all__ = ["NAMESPACE", "env_id", "env_spec", "register_all", "register_env", "register_task"]

NAMESPACE = "mle_gym"
VERSION = 0
"""Raised when a change makes results incomparable."""


def env_id(task: str) -> str:
    """Return the id of a task: ``mle_gym/<task>-v0``."""
    return f"{NAMESPACE}/{task}-v{VERSION}"


def env_spec(task: Task) -> EnvSpec:
    """Return the spec of a task; all of it is JSON-able.

    ``reward_threshold`` is bronze under reward ``paper``, its sign turned where lower is better; None for a task
    without thresholds and for a competition whose real data are not prepared here. There is no ``max_episode_steps``:
    the environment itself ends an episode after ``max_steps``. Where the answers cannot be cut in two, the reward
    split is the whole of them.
    """
    sign = 1.0 if task.higher_is_better else -1.0
    ranked = task.thresholds if not isinstance(task, CompetitionTask) or find_prepared(task.name) else None
    whole = isinstance(task, CompetitionTask) and task.facts.unit == "none"
    return EnvSpec(
        id=env_id(task.name),
        entry_point="mle_gym.env:MLEEnv",
        vector_entry_point="mle_gym.vector:MLEVectorEnv",
        reward_threshold=None if ranked is None else sign * ranked.bronze,
        nondeterministic=True,
        kwargs={"task": task.name, **({"reward_split": "all"} if whole else {})},
    )


def register_env(task: Task | str) -> str:
    """Register a task with Gymnasium, unless it is there already, and return its id."""
    task = tasks.get_task(task) if isinstance(task, str) else task
    spec = env_spec(task)
    if spec.id not in registry:
        gym.register(
            id=spec.id,
            entry_point=spec.entry_point,
            vector_entry_point=spec.vector_entry_point,
            reward_threshold=spec.reward_threshold,
            nondeterministic=spec.nondeterministic,
            kwargs=spec.kwargs,
        )
    return spec.id


def register_task(task: Task, *, replace: bool = False) -> str:
    """Add a task of your own to the table and to Gymnasium, in this process, and return its id.

    Raises:
        ValueError: Another task has that name and ``replace`` is False.
    """
    tasks.register_task(task, replace=replace)
    if replace:
        registry.pop(env_id(task.name), None)
    return register_env(task)


def register_all() -> None:
    """Register every known task; runs on ``import mle_gym``."""
    for task in tasks.list_tasks():
        register_env(task)
