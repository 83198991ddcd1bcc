"""``mle-gym train``."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from mle_gym.commands.base import UserError, parse
from trainers.common.config import TrainConfig, load_config

__all__ = ["main"]


@dataclass(frozen=True)
class _Files:
    """Where a configuration comes from."""

    config: Path | None = None
    """TOML file; a run's config.toml is one."""
    resume: Path | None = None
    """Continue this run from its last checkpoint."""
    set: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """A value in TOML's syntax, for example --set env.kwargs.time_limit=20; may be repeated."""


def main(argv: Sequence[str]) -> int:
    """Train a policy on one or more tasks.

    Returns:
        0 when the run ended, 128 + signal when it was stopped.

    Raises:
        UserError: The arguments ask for something that cannot be done, or the run failed.
    """
    own, rest = _split(argv)
    files = parse(_Files, own, command="train")
    if files.resume is not None and (files.config is not None or files.set or set(rest) - {"-h", "--help"}):
        raise UserError("--resume takes no other arguments: a run goes on with the configuration it started with.")
    config = _parse(load_config(files.config, files.set), argv)
    # A console script does not look where it was called, and that is where package.module:Class of a user is.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())

    from trainers.async_ppo.run import run_training

    return run_training(config, files.resume)


def _parse(config: TrainConfig, argv: Sequence[str]) -> TrainConfig:
    """Apply ``--section.key value`` flags on top of a configuration."""

    @dataclass(frozen=True)
    class Options(_Files):
        """Train a policy on one or more tasks.

        Flags override the file. Free-form tables (env.kwargs, algorithm.options) are reached with --set.
        """

        values: Annotated[TrainConfig, tyro.conf.arg(name="")] = dataclasses.field(default_factory=lambda: config)

    return parse(Options, argv, command="train").values


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate the arguments of ``_Files`` from those of the configuration."""
    names = {f"--{item.name}" for item in dataclasses.fields(_Files)}
    own: list[str] = []
    rest: list[str] = []
    arguments = list(argv)
    while arguments:
        argument = arguments.pop(0)
        name, equals, _ = argument.partition("=")
        if name in names:
            own.append(argument)
            if not equals and arguments:
                own.append(arguments.pop(0))
        else:
            rest.append(argument)
    return own, rest
