"""The environments of a run, checked and ready to be built."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

import mle_gym  # registers its ids
from mle_gym.outcome import Outcome
from mle_gym.suggest import choose
from mle_gym.wrappers.self_improvement import Archive, SelfImprovement
from trainers.common.config import ConfigError, EnvConfig

__all__ = ["Environments"]


class Environments:
    """Makes the environments that a configuration names.

    With ``improve`` above 0 all environments of a task share one archive of valid programs.

    Args:
        config: Ids, arguments of gym.make, share of improve prompts.

    Raises:
        ConfigError: No id is given, or one is unknown.
    """

    def __init__(self, config: EnvConfig) -> None:
        if not config.ids:
            raise ConfigError("env.ids is empty: name at least one environment, for example with --env.ids ID.")
        self.config = config
        self._specs = {env_id: _spec(env_id, config.kwargs) for env_id in config.ids}
        self._archives = {env_id: Archive() for env_id in config.ids}

    @property
    def pinned(self) -> bool:
        """True when programs run on cores of their own, which the learner then keeps off."""
        return any("task" in spec.kwargs and spec.kwargs.get("cores") != 0 for spec in self._specs.values())

    def check(self) -> None:
        """Make and reset one of each, to see that the arguments fit and the data are there.

        Raises:
            ConfigError: The arguments do not fit.
            TaskUnavailable: The data cannot be had here.
        """
        for env_id in self._specs:
            try:
                env = self._make(env_id)
                env.reset(seed=0)
                env.close()
            except (TypeError, ValueError, AttributeError) as error:
                raise ConfigError(f"{env_id} cannot be made with these env.kwargs: {error}") from error

    def factories(self, copies: int) -> list[Callable[[], gym.Env[Any, Any]]]:
        """Functions that make ``copies`` environments of each id, grouped by id in the configured order."""
        return [partial(self._make, env_id) for env_id in self._specs for _ in range(copies)]

    def remember(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Fill the archives with the valid programs of an earlier part of the run."""
        if not self.config.improve:
            return
        for record in records:
            info = record["info"]
            if info["outcome"] == Outcome.SCORED and record["task"] in self._archives:
                names = ("program", "plan", "terminal_output", "score")
                self._archives[record["task"]].add(mle_gym.Attempt(**{name: info[name] for name in names}))

    def _make(self, env_id: str) -> gym.Env[Any, Any]:
        env = gym.make(self._specs[env_id])
        if self.config.improve:
            env = SelfImprovement(env, self.config.improve, archive=self._archives[env_id])
        return env


def _spec(env_id: str, kwargs: Mapping[str, Any]) -> EnvSpec:
    """The spec of an id with further arguments; ``module:id`` imports the module that registers it, as in gym.make."""
    module, colon, name = env_id.rpartition(":")
    if colon:
        try:
            import_module(module)
        except ImportError as error:
            raise ConfigError(f"env.ids={env_id!r}: the module cannot be imported: {error}.") from error
    if name not in gym.registry:
        try:
            choose("env.ids", name, gym.registry)
        except ValueError as error:
            # The list of all ids is for `mle-gym tasks`.
            raise ConfigError(f"{str(error).split(' Choices:')[0]} `mle-gym tasks` lists all.") from None
    spec = copy.deepcopy(gym.registry[name])
    spec.kwargs = {**spec.kwargs, **kwargs}
    return spec
