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

AnyEnv = gym.Env[Any, Any]
Wrap = Callable[..., AnyEnv]


class Environments:
    """Makes the environments that a configuration names.

    With ``improve`` above 0 all environments of a task share one archive of valid programs, or, with
    ``archive="last_of_slot"``, each has one of its own that outlives it.

    Args:
        config: Ids, arguments of gym.make, share of improve prompts.
        program_seed: With a cache of executions, the seed that all programs have.
        base_model: The model that the instrumenter ``llm`` asks where ``instrumenter_options`` name none.

    Raises:
        ConfigError: No id is given, or one is unknown.
    """

    def __init__(self, config: EnvConfig, *, program_seed: int | None = None, base_model: str = "") -> None:
        if not config.ids:
            raise ConfigError("env.ids is empty: name at least one environment, for example with --env.ids ID.")
        self.config = config
        self.cached = program_seed is not None
        self._specs = {env_id: _spec(env_id, config.kwargs) for env_id in config.ids}
        for spec in self._specs.values():
            if program_seed is not None and "task" in spec.kwargs:
                spec.kwargs.setdefault("program_seed", program_seed)
            if base_model and spec.kwargs.get("instrumenter") == "llm":
                spec.kwargs.setdefault("instrumenter_options", {"model": base_model})
        self._archives: dict[tuple[str, int], Archive] = {}

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
                tells = hasattr(env.unwrapped, "execution_key")
                env.close()
            except (TypeError, ValueError, AttributeError) as error:
                raise ConfigError(f"{env_id} cannot be made with these env.kwargs: {error}") from error
            if self.cached and not tells:
                raise ConfigError(
                    f"execution.cache needs to know what a result depends on, and {env_id} has no execution_key that "
                    "tells; set execution.cache to false."
                )

    def factories(self, copies: int, wrap: Wrap | None = None) -> list[Callable[[], gym.Env[Any, Any]]]:
        """Functions that make ``copies`` environments of each id, grouped by id in the configured order.

        Args:
            copies: Of each id.
            wrap: Given each environment as ``gym.make`` returns it, its id and its number.
        """
        ids = [env_id for env_id in self._specs for _ in range(copies)]
        return [
            partial(self._make, env_id, None if wrap is None else partial(wrap, task=env_id, index=index), index)
            for index, env_id in enumerate(ids)
        ]

    def time_limit(self, envs: Iterable[AnyEnv | None]) -> float:
        """Seconds that a program may take in any of these environments; 0.0 where none says."""
        limits = (getattr(env.unwrapped, "limits", None) for env in envs if env is not None)
        return max((float(limit.time) for limit in limits if limit is not None), default=0.0)

    def remember(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Fill the archives with the valid programs of an earlier part of the run."""
        if not self.config.improve:
            return
        for record in records:
            info = record["info"]
            if info["outcome"] == Outcome.SCORED and record["task"] in self._specs:
                names = ("program", "plan", "terminal_output", "score")
                attempt = mle_gym.Attempt(**{name: info[name] for name in names})
                self._archive(record["task"], record["env"]).add(attempt)

    def _archive(self, env_id: str, index: int) -> Archive:
        """The archive of an environment: its task's, or its own."""
        own = self.config.archive == "last_of_slot"
        return self._archives.setdefault(
            (env_id, index if own else -1), Archive(1 if own else self.config.archive_size)
        )

    def _make(self, env_id: str, wrap: Wrap | None = None, index: int = -1) -> AnyEnv:
        env: AnyEnv = gym.make(self._specs[env_id])
        if wrap is not None:
            env = wrap(env)
        if self.config.improve:
            pick = "last" if self.config.archive == "last_of_slot" else "any"
            env = SelfImprovement(env, self.config.improve, pick=pick, archive=self._archive(env_id, index))
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
