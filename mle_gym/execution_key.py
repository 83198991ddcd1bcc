"""What the result of an execution depends on."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

from mle_gym.config import EnvConfig
from mle_gym.sandbox.base import Limits
from mle_gym.tasks.store import MANIFEST, data_version
from mle_gym.tasks.task import TaskData

__all__ = ["ExecutionKey"]


@dataclass(frozen=True, slots=True)
class ExecutionKey:
    """Two executions with the same key are repetitions of each other.

    What a program draws from the operating system, and how long it takes, may differ all the same.
    """

    task: str
    program: str
    """SHA-256 of the source."""
    data: str
    """Kind and version of the data."""
    limits: str
    """Time, memory and so on, the interpreter, the sandbox, and what the reward is made of; JSON."""
    seed: int
    """The program's ``$MLE_SEED``."""
    instrumenter: str

    @classmethod
    def of(cls, program: str, data: TaskData, limits: Limits, config: EnvConfig, seed: int, instrumenter: str) -> Self:
        """Make the key of a program in an environment.

        Args:
            program: Its source.
            data: The task's data.
            limits: What the program may use.
            config: The environment's arguments.
            seed: Its ``$MLE_SEED``.
            instrumenter: Where its milestones come from.
        """
        ground = {name: getattr(config, name) for name in ("sandbox", "python", "reward", "reward_split")}
        return cls(
            task=data.task.name,
            program=hashlib.sha256(program.encode("utf-8", "replace")).hexdigest(),
            data=f"{data.kind}:{_version(data.public_dir)}",
            limits=json.dumps({**asdict(limits), **ground}, sort_keys=True),
            seed=seed,
            instrumenter=instrumenter,
        )


@lru_cache(maxsize=256)
def _version(public: Path) -> str:
    """Version of prepared data: what their manifest says, else a digest of names, sizes and times of their files."""
    for folder in (public, public.parent):
        if (folder / MANIFEST).is_file():
            try:
                return data_version(folder)
            except (ValueError, KeyError, OSError):
                continue  # a file of the competition's own that bears this name
    digest = hashlib.sha256()
    for place, folders, files in os.walk(public):
        folders.sort()
        for name in sorted(files):
            info = os.stat(os.path.join(place, name))
            shown = os.path.relpath(os.path.join(place, name), public)
            digest.update(f"{shown}\0{info.st_size}\0{info.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16]
