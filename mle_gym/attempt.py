"""An earlier answer with what became of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from mle_gym.suggest import choose

__all__ = ["Attempt"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """What an improve prompt shows: a program, its plan, what it printed and how it ended."""

    program: str
    plan: str = ""
    terminal_output: str = ""
    score: float = math.nan
    """Raw metric on the reward split; nan when not scored or not to be shown."""
    outcome: str = ""
    """One of :class:`mle_gym.outcome.Outcome`; ``""`` when not to be shown."""
    message: str = ""
    """One sentence about what went wrong."""

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Self:
        """Build one from ``reset(options={"previous": values})``; ``program`` has to be there.

        Raises:
            ValueError: A key is unknown, or ``program`` is missing.
            TypeError: A value has the wrong type.
        """
        if not isinstance(values, Mapping):
            raise TypeError(f"options['previous'] is {type(values).__name__}; give a dict with 'program' in it.")
        for key in values:
            choose("options['previous'] key", key, [field.name for field in fields(cls)])
        if "program" not in values:
            raise ValueError("options['previous'] has no 'program'; give the source of the previous program.")
        for key, value in values.items():
            kind = int | float if key == "score" else str
            if not isinstance(value, kind) or isinstance(value, bool):
                name = "a number" if key == "score" else "a text"
                raise TypeError(f"options['previous'][{key!r}] is {type(value).__name__}; give {name}.")
        return cls(**values)  # type: ignore[arg-type]
