"""What the trainer needs of whatever executes actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mle_gym.pool import StepResult

__all__ = ["Executor"]


class Executor(Protocol):
    """Environments whose steps overlap; ``mle_gym.pool.EnvPool`` is one, a replay and a Ray pool are others.

    Where it also has ``cancel(ticket)``, actions that were dropped are ended early.
    """

    def reset(self, *, seed: int | None = None) -> Sequence[StepResult]:
        """Start an episode in every environment; one result each, in the order of the environments."""
        ...

    def send(self, env_index: int, action: str) -> int:
        """Start a step and return its ticket; raises when that environment is busy."""
        ...

    def recv(self, min_ready: int = 1, timeout: float | None = None) -> Sequence[StepResult]:
        """At least ``min_ready`` finished steps in order of completion, or fewer after ``timeout`` seconds."""
        ...

    def close(self) -> None:
        """End everything."""
        ...
