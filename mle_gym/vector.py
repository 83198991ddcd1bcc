"""The vector environment behind ``gym.make_vec``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from mle_gym.env import MLEEnv
from mle_gym.pool import EnvPool, StepResult

__all__ = ["MLEVectorEnv"]

Texts = tuple[str, ...]


class MLEVectorEnv(VectorEnv[Texts, Texts, NDArray[Any]]):
    """Copies of one task that step together, their programs side by side, in this process.

    Episodes of one program are over after one step, so an ended environment is reset in the same step
    (``AutoresetMode.SAME_STEP``): the observation is the next prompt, and the last one of the old episode stands in
    ``info["final_obs"]`` and ``info["final_info"]``. Gymnasium's default would throw every second program away. There
    is no shared memory: it cannot carry text. A step lasts as long as its slowest program; :class:`EnvPool` has no
    such barrier.

    Args:
        num_envs: Number of environments.
        **kwargs: Arguments of :class:`MLEEnv`.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        **MLEEnv.metadata,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(self, num_envs: int = 1, **kwargs: Any) -> None:
        self.num_envs = num_envs
        self._pool = EnvPool([partial(MLEEnv, **kwargs)] * num_envs)
        first = self.envs[0]
        self.render_mode = first.render_mode
        self.single_action_space = first.action_space
        self.single_observation_space = first.observation_space
        self.action_space = batch_space(first.action_space, num_envs)
        self.observation_space = batch_space(first.observation_space, num_envs)

    @property
    def envs(self) -> tuple[MLEEnv, ...]:
        """The environments, each at its index.

        Raises:
            RuntimeError: One failed and could not be built anew; ``reset`` tries again.
        """
        envs = []
        for index, env in enumerate(self._pool.envs):
            if not isinstance(env, MLEEnv):
                raise RuntimeError(f"Environment {index} failed and could not be built anew; call reset().")
            envs.append(env)
        return tuple(envs)

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The environments' generators."""
        return tuple(env.np_random for env in self.envs)

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The environments' seeds."""
        return tuple(env.np_random_seed for env in self.envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Texts, dict[str, Any]]:
        """Reset all environments; environment ``i`` gets ``seed + i`` or ``seed[i]``."""
        if isinstance(seed, int | None):
            results = self._pool.reset(seed=seed, options=options)
        elif len(seed) != self.num_envs:
            raise ValueError(f"There are {len(seed)} seeds for {self.num_envs} environments; give one for each.")
        else:
            results = []
            for index, own in enumerate(seed):
                results += self._pool.reset([index], seed=None if own is None else own - index, options=options)
        infos: dict[str, Any] = {}
        for result in results:
            infos = self._add_info(infos, result.info, result.env_index)
        return tuple(result.obs for result in results), infos

    def step(
        self, actions: Sequence[str]
    ) -> tuple[Texts, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Run one program in each environment and wait for all of them."""
        if isinstance(actions, str) or len(actions) != self.num_envs:
            raise ValueError(f"step() takes {self.num_envs} texts, one for each environment.")
        for index, action in enumerate(actions):
            self._pool.send(index, action)
        results: list[StepResult] = self._pool.recv(min_ready=self.num_envs)
        results.sort(key=lambda result: result.env_index)
        infos: dict[str, Any] = {}
        for result in results:
            info = result.info
            if result.terminated or result.truncated:
                final = {"final_obs": result.obs, "final_info": result.info}
                infos = self._add_info(infos, final, result.env_index)
                info = result.next_info or result.info
            infos = self._add_info(infos, info, result.env_index)
        return (
            tuple(result.next_obs for result in results),
            np.array([result.reward for result in results], dtype=np.float64),
            np.array([result.terminated for result in results], dtype=np.bool_),
            np.array([result.truncated for result in results], dtype=np.bool_),
            infos,
        )

    def render(self) -> tuple[str | None, ...]:  # type: ignore[override]
        """Render each environment."""
        return tuple(env.render() for env in self.envs)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each environment, or get an attribute of each."""
        found = [getattr(env, name) for env in self.envs]
        return tuple(value(*args, **kwargs) if callable(value) else value for value in found)

    def close_extras(self, **kwargs: Any) -> None:
        """End running programs and close the environments."""
        self._pool.close()
