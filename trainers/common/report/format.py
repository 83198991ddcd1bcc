"""Numbers of a report as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["as_float", "is_number", "nested", "number", "percent"]


def nested(values: Mapping[str, Any], *keys: str) -> Any:
    """Return a nested value, None where it is not there."""
    found: Any = values
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def is_number(value: object) -> bool:
    """Return whether a JSON value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_float(value: Any) -> float:
    """Return a JSON value as a float, nan where it is no number."""
    return float(value) if is_number(value) else math.nan


def number(value: object) -> str:
    """Return four significant digits, a dash where there is no number."""
    found = as_float(value)
    return "–" if math.isnan(found) else f"{found:.4g}"


def percent(value: float) -> str:
    """Return a share in percent, a dash where there is none."""
    return "–" if math.isnan(value) else f"{value:.1%}"
