"""What the commands of the protocol share: how programs are sampled and run."""

from __future__ import annotations

import contextlib
import importlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import gymnasium as gym
import tyro

from mle_gym.commands.base import UserError, resolve_id

__all__ = ["SamplingOptions", "are_tasks", "full_ids", "gym_arguments"]


@dataclass(frozen=True)
class SamplingOptions:
    """How programs are sampled and run."""

    temperature: float = 0.7
    """Sampling temperature; the paper's by default."""
    token_budget: int | None = None
    """Size of the prompt; by default the policy's own, else 1024."""
    max_new_tokens: int | None = None
    """Longest response, tokens; by default the policy's own, else 1024."""
    time_limit: float | None = None
    """Seconds a program may run; by default the task's own."""
    reward_split: str = "public"
    """Rows that are scored: public, private or all (the paper's setting)."""
    slots: int = 0
    """Programs that run at once; 0 is one for each core."""
    seed: int = 0
    """Of the sampling and the environments."""
    device: str = "auto"
    """Where the policy runs: cpu, cuda, or auto."""
    dtype: str = "auto"
    """Type of the weights: float32, bfloat16 or auto."""
    threads: int = 1
    """Threads of the policy on a CPU."""
    set: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """A further argument of gym.make in TOML's syntax, for example --set memory_mb=4096; may be repeated."""
    json: bool = False
    """Print JSON."""

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise UserError(f"--temperature {self.temperature:g} must be above 0: equal programs tell nothing.")
        for name, value in (("--max-new-tokens", self.max_new_tokens), ("--threads", self.threads)):
            if value is not None and value < 1:
                raise UserError(f"{name} {value} must be at least 1.")
        if self.slots < 0 or self.seed < 0:
            raise UserError(f"--slots {self.slots} and --seed {self.seed} must not be negative.")


def gym_arguments(options: SamplingOptions) -> dict[str, Any]:
    """Return the arguments of gym.make that the options name.

    Raises:
        UserError: A ``--set`` is not of the form name=value.
    """
    kwargs: dict[str, Any] = {}
    if options.reward_split != "public":
        kwargs["reward_split"] = options.reward_split
    if options.time_limit is not None:
        kwargs["time_limit"] = options.time_limit
    for text in options.set:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UserError(f"--set {text!r} must look like name=value.")
        try:
            kwargs[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            kwargs[name.strip()] = value.strip()
    return kwargs


def are_tasks(ids: Sequence[str]) -> bool:
    """Whether these are tasks of this suite, whose prompts have a ``token_budget``."""
    for env_id in ids:
        module, _, name = env_id.rpartition(":")
        # Whoever makes the environments has the better sentence for an id or a module that does not exist.
        if module:
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        if name in gym.registry and "task" not in gym.registry[name].kwargs:
            return False
    return True


def full_ids(names: Sequence[str]) -> list[str]:
    """Return environment ids for ids or names of tasks; ``module:id`` stays as it is."""
    return list(dict.fromkeys(name if ":" in name else resolve_id(name) for name in names))
