"""The table of tasks: built-in ones, those of installed plug-ins, and those registered by hand."""

from __future__ import annotations

import difflib
import threading
import warnings
from collections.abc import Iterable
from importlib.metadata import entry_points

from mle_gym.tasks.task import Task

__all__ = ["ENTRY_POINT_GROUP", "get_task", "list_tasks", "register_task"]

ENTRY_POINT_GROUP = "mle_gym.tasks"
"""An entry point here names a :class:`Task`, an iterable of them, or a function of no arguments that returns either."""

_tasks: dict[str, Task] = {}
_loaded = False
_lock = threading.RLock()


def register_task(task: Task, *, replace: bool = False) -> Task:
    """Make a task known under its name.

    Args:
        task: The task.
        replace: Take the place of a task of the same name.

    Returns:
        The task.

    Raises:
        ValueError: The name is taken, or is not made of letters, digits, ``-``, ``_`` and ``.``.
    """
    _load()
    _add(task, replace=replace)
    return task


def get_task(name: str) -> Task:
    """Return the task with this name (``credit-default``) or environment id (``mle_gym/credit-default-v0``).

    Raises:
        KeyError: No task has this name; the message suggests near ones.
    """
    _load()
    key = name.removeprefix("mle_gym/")
    if key not in _tasks:
        key = key.removesuffix("-v0")
    try:
        return _tasks[key]
    except KeyError:
        near = difflib.get_close_matches(key, _tasks, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "mle_gym.tasks.list_tasks() shows all."
        raise KeyError(f"There is no task {name!r}; {hint}") from None


def list_tasks(tag: str | None = None) -> tuple[Task, ...]:
    """Return all tasks in order of name, or those that carry ``tag``."""
    _load()
    return tuple(_tasks[name] for name in sorted(_tasks) if tag is None or tag in _tasks[name].tags)


def _add(task: Task, *, replace: bool = False) -> None:
    if not task.name or not all(c.isascii() and (c.isalnum() or c in "-_.") for c in task.name):
        raise ValueError(f"Task name {task.name!r} must be made of letters, digits, '-', '_' and '.'.")
    with _lock:
        if not replace and task.name in _tasks and _tasks[task.name] != task:
            raise ValueError(f"A task {task.name!r} is registered already; choose another name or pass replace=True.")
        _tasks[task.name] = task


def _load() -> None:
    """Fill the table once: built-in tasks, then plug-ins."""
    global _loaded
    with _lock:
        if _loaded:
            return
        _loaded = True  # Set first: a plug-in may call register_task while it is loaded.
        from mle_gym.tasks.mlebench.task import competition_tasks
        from mle_gym.tasks.offline.table import OFFLINE_TASKS

        for built_in in (*OFFLINE_TASKS, *competition_tasks()):
            _add(built_in)
        for entry in entry_points(group=ENTRY_POINT_GROUP):
            try:
                found = entry.load()
                found = found() if callable(found) and not isinstance(found, Task) else found
                members: Iterable[Task] = (found,) if isinstance(found, Task) else found
                for task in members:
                    _add(task)
            except Exception as error:
                # One broken plug-in must not take every other task with it.
                warnings.warn(
                    f"Tasks of the plug-in {entry.value!r} are left out: {type(error).__name__}: {error}", stacklevel=3
                )
