"""Calls that report when they have returned, and the recorder that they report to."""

from __future__ import annotations

import functools
import operator
import os
import sys

TYPE_CHECKING = False  # A bare interpreter would have to load ``typing``.
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType
    from typing import Any

__all__ = ["Call", "Probe", "Recorder", "is_function", "rows", "wrap"]

MOST_FAMILIES = 8
MOST_ERRORS = 3
LONGEST_NAME = 64


class Call:
    """A call that has returned."""

    __slots__ = ("args", "frame", "kwargs", "result")

    def __init__(self, result: Any, frame: FrameType, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.result = result
        self.frame = frame
        """The caller's."""
        self.args = args
        self.kwargs = kwargs

    def get(self, position: int, *names: str) -> Any:
        """Return the argument at a position or with one of the names; None where it was not given."""
        if position < len(self.args):
            return self.args[position]
        return next((self.kwargs[name] for name in names if name in self.kwargs), None)


class Probe:
    """Calls an original function and reports the call once it has returned; a call that raises is not reported.

    It pickles to ``operator.call``, so that a class of the program that is pickled by value works in a worker process,
    which has no hooks.
    """

    def __init__(self, after: Callable[[Call], object]) -> None:
        self.after = after

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (operator, "call")

    def __call__(self, original: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call ``original`` and report."""
        result = original(*args, **kwargs)
        self.after(Call(result, sys._getframe(2), args, kwargs))
        return result


def wrap(probe: Probe, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function like ``original`` that goes through ``probe``; it refers to nothing else, so it pickles."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return probe(original, *args, **kwargs)

    return functools.update_wrapper(call, original)


class Recorder:
    """Sends each fact once, and never raises into the program."""

    def __init__(self, report: Callable[[str, str], None]) -> None:
        self.report = report
        self.reached: set[str] = set()
        self.families: set[str] = set()
        self.errors = 0
        self.program_files: dict[str, bool] = {}
        self.folder = os.path.join(os.getcwd(), "")
        folders = [os.path.dirname(os.__file__), *(path for path in sys.path if path)]
        self.library = (*(os.path.join(folder, "") for folder in folders), "<frozen", "<__array_function__")

    def reach(self, name: str) -> None:
        """Report a milestone."""
        if name not in self.reached:
            self.reached.add(name)
            self.report(name, "interpreter")

    def family(self, name: str) -> None:
        """Report the class of a fitted model, for the first eight classes."""
        if name not in self.families and len(self.families) < MOST_FAMILIES:
            self.families.add(name)
            self.report(f"estimator:{name}"[:LONGEST_NAME], "interpreter")

    def safely(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Make ``function`` report its exceptions instead of raising them into the program, and return None then."""

        def guarded(*args: Any) -> Any:
            try:
                return function(*args)
            except Exception as error:
                self.fail(function.__name__, error)
                return None

        return guarded

    def fail(self, where: str, error: Exception) -> None:
        """Report a failed hook, the first three times."""
        self.errors += 1
        if self.errors <= MOST_ERRORS:
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            line = trace.tb_lineno if trace is not None else 0
            try:
                self.report(f"hook_error:{where}:{type(error).__name__}:{line}"[:LONGEST_NAME], "interpreter")
            except Exception:
                self.errors = MOST_ERRORS  # The channel itself is gone: there is nobody left to tell.

    def is_program(self, frame: FrameType | None) -> bool:
        """Whether the frame belongs to the program's own code and not to a library."""
        if frame is None:
            return False
        name = frame.f_code.co_filename
        known = self.program_files.get(name)
        if known is None:
            known = name.startswith(self.folder) or not name.startswith(self.library)
            self.program_files[name] = known
        return known


def is_function(value: Any) -> bool:
    """Whether this is a function written in Python."""
    return type(value) is type(is_function)


def rows(value: Any) -> int | None:
    """Return the number of rows of an array, table, list or booster's data set; None where there is none to see."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape and isinstance(shape[0], int):
        return shape[0]
    if isinstance(value, (list, tuple)):
        return len(value)
    for name in ("num_data", "num_row"):  # LightGBM; XGBoost and CatBoost
        method = getattr(value, name, None)
        if callable(method):
            return int(method())
    return None
