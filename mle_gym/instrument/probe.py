"""The default instrumenter: hooks in the interpreter, no model needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mle_gym.instrument.base import Instrumenter
from mle_gym.instrument.bundle import hooks_source
from mle_gym.instrument.context import program_context

if TYPE_CHECKING:
    from mle_gym.sandbox.base import Program
    from mle_gym.tasks.task import TaskData

__all__ = ["ProbeInstrumenter"]


class ProbeInstrumenter(Instrumenter):
    """Leaves the program as it is and ships hooks that see what it really does.

    A milestone follows from an event inside the interpreter (an import statement completed, a data file was opened, a
    model was constructed and fitted, a metric was computed, the test rows were predicted), never from printed text.
    The rules are in :mod:`mle_gym.instrument.hooks`.

    Not seen: a model or metric written by hand on arrays (it earns the milestones of imports and files), fits that the
    program itself sends to new processes (those of ``GridSearchCV(n_jobs=2)`` are seen through its own ``fit``), Keras
    and JAX, and readers that open files in C++ or Rust. A program that searches the interpreter for the hooks can forge
    them, which is worth 0.7 at most and nothing to a valid submission.

    Example:
        >>> ProbeInstrumenter().name
        'probe'
    """

    name: ClassVar[str] = "probe"

    def instrument(self, source: str, data: TaskData) -> Program:
        """Return the unchanged program with its hooks and what they must know."""
        from mle_gym.sandbox.base import Program

        return Program(source=source, hooks=hooks_source(), context=program_context(source, data))
