"""What environments of one process share: sandboxes, instrumenters and loaded data."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from functools import lru_cache
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING

from mle_gym.config import EnvConfig

if TYPE_CHECKING:
    from mle_gym.instrument import Instrumenter
    from mle_gym.sandbox.base import Sandbox
    from mle_gym.tasks.task import Task, TaskData

__all__ = ["close_sandboxes", "shared_data", "shared_instrumenter", "shared_sandbox"]

_lock = threading.RLock()
_sandboxes: dict[tuple[object, ...], Sandbox] = {}
_inherited: list[Sandbox] = []
_data: dict[tuple[object, ...], tuple[Task, TaskData]] = {}


def shared_sandbox(config: EnvConfig) -> Sandbox:
    """Return this process's sandbox for these settings, starting it on first use; it ends with the process.

    Raises:
        SandboxUnavailable: The machine cannot give what was asked for.
    """
    from mle_gym.sandbox import make_sandbox

    key = (config.sandbox, config.python, config.allow_unsafe, config.require)
    with _lock:
        if key not in _sandboxes:
            sandbox = make_sandbox(
                config.sandbox, python=config.python, allow_unsafe=config.allow_unsafe, require=config.require
            )
            _sandboxes[key] = sandbox
            # Runs at the end of the main process and of a multiprocessing worker alike; atexit skips the latter.
            Finalize(None, sandbox.close, exitpriority=10)
        return _sandboxes[key]


def shared_instrumenter(name: str, options: Mapping[str, object] | None = None) -> Instrumenter:
    """Return this process's instrumenter of that name with these options; a model is loaded once.

    Raises:
        ValueError: There is none, it does not take these options, or its model cannot be had.
    """
    with _lock:
        return _instrumenter(name, json.dumps(dict(options or {}), sort_keys=True))


@lru_cache(maxsize=16)
def _instrumenter(name: str, options: str) -> Instrumenter:
    from mle_gym.instrument import make_instrumenter

    return make_instrumenter(name, **json.loads(options))


def close_sandboxes() -> None:
    """End the shared sandboxes of this process; the next program starts a fresh one."""
    with _lock:
        for sandbox in _sandboxes.values():
            sandbox.close()
        _sandboxes.clear()


def shared_data(task: Task, config: EnvConfig) -> TaskData:
    """Return the task's data, loaded once in a process.

    Raises:
        TaskUnavailable: The data cannot be had here.
        ValueError: The data have no such reward split.
    """
    key = (task.name, config.data, config.data_dir, config.size, os.environ.get("MLE_GYM_DATA"))
    with _lock:
        known = _data.get(key)
    if known is not None and known[0] is task:
        return known[1]
    folder = None if config.data_dir is None else Path(config.data_dir)
    data = task.load(data=config.data, data_dir=folder, size=config.size)
    with _lock:
        _data[key] = (task, data)
    return data


def _forget() -> None:
    # A forked child has neither the threads nor the processes behind these sandboxes. It keeps them aside, because
    # deleting them would close what is still its parent's.
    global _lock
    _lock = threading.RLock()
    _inherited.extend(_sandboxes.values())
    _sandboxes.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
