"""Milestones and the contract of an instrumenter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from mle_gym.sandbox.base import Program
    from mle_gym.tasks.task import TaskData

__all__ = ["CREDIT_PER_MILESTONE", "MILESTONES", "Instrumenter", "InstrumenterFailed"]

MILESTONES: tuple[str, ...] = (
    "imported_packages",
    "loaded_data",
    "defined_model",
    "trained_model",
    "evaluated",
    "predicted_test",
    "wrote_submission",
)
"""The seven steps that earn partial credit, in the order of ``info["milestones"]``."""

CREDIT_PER_MILESTONE = 0.1
"""Reward for each milestone that a failing program reached (arXiv 2509.01684, environment instrumentation)."""


class InstrumenterFailed(RuntimeError):
    """What an instrumenter depends on cannot be reached: a fault of the machinery, never of the program.

    The message is one sentence. A step that meets it ends as ``infrastructure_error`` and is masked.
    """


class Instrumenter(ABC):
    """Turns a program into one whose milestones the sandbox can see."""

    name: ClassVar[str]

    @abstractmethod
    def instrument(self, source: str, data: TaskData) -> Program:
        """Return the program to run. Never raises for what ``source`` holds; falls back to it unchanged.

        Raises:
            InstrumenterFailed: A model or server that it needs cannot be reached.
        """

    def label(self, program: Program | None = None) -> str:
        """Return what ``info["instrumenter"]`` says of a program made here; without one, of none yet."""
        return self.name
