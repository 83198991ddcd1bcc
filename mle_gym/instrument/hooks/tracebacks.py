"""Keeps the hooks' frames out of what the program's author sees."""

from __future__ import annotations

import functools
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType, TracebackType
    from typing import Any

__all__ = ["HIDDEN", "hide_from_excepthook", "hide_from_traceback"]

HIDDEN = "<frozen importlib._bootstrap mle_gym>"
"""File name of the hooks' code; ``warnings`` skips frames with such a name when it looks for the line to blame."""


def strip(error: BaseException | None, seen: set[int]) -> None:
    """Cut the hidden frames out of an exception's traceback and those of its causes."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    trace = error.__traceback__ = visible(error.__traceback__)
    while trace is not None:
        trace.tb_next = visible(trace.tb_next)
        trace = trace.tb_next
    for inner in (error.__cause__, error.__context__, *(getattr(error, "exceptions", None) or ())):
        strip(inner, seen)


def visible(trace: TracebackType | None) -> TracebackType | None:
    """Return the first entry that is not hidden."""
    while trace is not None and trace.tb_frame.f_code.co_filename == HIDDEN:
        trace = trace.tb_next
    return trace


def hide_from_excepthook() -> None:
    """Strip uncaught exceptions before they are shown."""
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        error.__traceback__ = trace  # CPython shows this one, whatever else it is given.
        strip(error, set())
        previous(kind, error, error.__traceback__)

    sys.excepthook = excepthook
    previous_in_threads = threading.excepthook

    def excepthook_in_threads(details: Any) -> None:
        strip(details.exc_value, set())
        previous_in_threads(details)

    threading.excepthook = excepthook_in_threads


def hide_from_traceback(module: ModuleType) -> None:
    """Leave the hidden frames out of what the ``traceback`` module formats."""
    for name in ("walk_tb", "_walk_tb_with_full_positions"):
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, visible_only(original))


def visible_only(walk: Callable[[Any], Iterable[Any]]) -> Callable[[Any], Iterable[Any]]:
    """Wrap a generator of frames so that it skips the hidden ones."""

    @functools.wraps(walk)
    def walk_visible(trace: Any) -> Iterable[Any]:
        return (item for item in walk(trace) if item[0].f_code.co_filename != HIDDEN)

    return walk_visible
