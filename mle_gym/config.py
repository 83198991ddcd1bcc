"""The keyword arguments of an environment, checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mle_gym.prompts import MIN_TOKEN_BUDGET, characters
from mle_gym.rewards import get_reward
from mle_gym.sandbox.base import Limits
from mle_gym.spaces import MAX_LENGTH
from mle_gym.suggest import choose
from mle_gym.tasks.task import Task

__all__ = ["EnvConfig"]

DATA = ("auto", "prepared", "synthetic", "offline")
SPLITS = ("public", "private", "all")
RENDER_MODES = ("human", "ansi")


MAX_TIME_LIMIT = 2_000_000
"""Seconds; the kernel counts what it waits for in milliseconds of 31 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvConfig:
    """What ``gym.make`` takes, all of it JSON-able. The fields are explained in :class:`mle_gym.env.MLEEnv`.

    Raises:
        ValueError: A value is not one of the choices or is out of range.
        TypeError: A value has the wrong type.
    """

    data: str = "auto"
    data_dir: str | None = None
    size: str | None = None
    sandbox: str = "local"
    python: str | None = None
    cores: int | None = None
    gpus: int | None = None
    memory_mb: int | None = None
    time_limit: float | None = None
    allow_unsafe: bool = False
    require: tuple[str, ...] = ()
    instrumenter: str = "probe"
    instrumenter_options: Mapping[str, object] = field(default_factory=dict)
    reward: str = "paper"
    reward_split: str = "public"
    max_steps: int = 1
    program_seed: int | None = None
    token_budget: int = 1024
    render_mode: str | None = None

    def __post_init__(self) -> None:
        choose("data", self.data, DATA)
        choose("reward_split", self.reward_split, SPLITS)
        get_reward(_text("reward", self.reward))
        for name in ("sandbox", "instrumenter"):
            _text(name, getattr(self, name))
        _options(self.instrumenter_options)
        for name in ("data_dir", "size", "python"):
            value = getattr(self, name)
            if isinstance(value, Path):
                object.__setattr__(self, name, str(value))
            elif value is not None:
                _text(name, value)
        if self.render_mode is not None:
            choose("render_mode", self.render_mode, RENDER_MODES)
        if not isinstance(self.allow_unsafe, bool):
            raise TypeError(f"allow_unsafe={self.allow_unsafe!r} has to be True or False.")
        if isinstance(self.require, str) or not all(isinstance(x, str) for x in self.require):
            raise TypeError(f"require={self.require!r} has to be a list of names, for example ['network', 'memory'].")
        object.__setattr__(self, "require", tuple(self.require))
        for name in ("cores", "gpus"):
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name), 0)
        _whole("max_steps", self.max_steps, 1)
        _whole("token_budget", self.token_budget, MIN_TOKEN_BUDGET)
        if characters(self.token_budget) > MAX_LENGTH:
            raise ValueError(
                f"token_budget={self.token_budget} is about {characters(self.token_budget)} characters, more than an "
                f"observation may hold ({MAX_LENGTH}); give at most {MAX_LENGTH // 3}."
            )
        if self.memory_mb is not None:
            _whole("memory_mb", self.memory_mb, 16)
        if self.program_seed is not None:
            _whole("program_seed", self.program_seed, 0)
        if self.time_limit is not None and not (_is_number(self.time_limit) and 0 < self.time_limit < float("inf")):
            raise ValueError(f"time_limit={self.time_limit!r} has to be a number of seconds above 0.")
        if self.time_limit is not None and self.time_limit > MAX_TIME_LIMIT:
            raise ValueError(
                f"time_limit={self.time_limit!r} is too long; give at most {MAX_TIME_LIMIT:,} s (23 days)."
            )

    def limits(self, task: Task) -> Limits:
        """Return what one program may use: these arguments, else the task's suggestions, else the defaults."""
        suggested, default = task.limits, Limits()
        time = self.time_limit if self.time_limit is not None else suggested.get("time", default.time)
        memory = self.memory_mb if self.memory_mb is not None else suggested.get("memory_mb", default.memory_mb)
        cores = self.cores if self.cores is not None else suggested.get("cores", default.cores)
        gpus = self.gpus if self.gpus is not None else suggested.get("gpus", default.gpus)
        return Limits(time=float(time), memory_mb=int(memory), cores=int(cores), gpus=int(gpus))


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name}={value!r} has to be a text that is not empty.")
    return value


def _options(value: object) -> None:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise TypeError(f"instrumenter_options={value!r} has to be a table, for example {{'model': 'tiny'}}.")
    try:
        json.dumps(dict(value))
    except (TypeError, ValueError) as error:
        raise TypeError(f"instrumenter_options={value!r} cannot be written as JSON: {error}.") from error


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}={value!r} has to be a whole number.")
    if value < least:
        raise ValueError(f"{name}={value} is too small; give at least {least}.")
