"""Before and after: what the start policy and the trained one write, side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["ROWS", "comparison"]

Tables = Mapping[str, Mapping[str, Any]]

ROWS: tuple[tuple[str, str], ...] = (
    ("valid programs", "valid_share"),
    ("mean reward", "mean_reward"),
    ("mean public score of valid programs", "mean_public_score"),
    ("best public score", "best_public_score"),
    ("private score of that program", "best_private_score"),
    ("mean duration, s", "mean_duration"),
    ("greedy program: reward", "greedy_reward"),
    ("greedy program: public score", "greedy_public_score"),
)
"""Label and key of each number, in the order shown."""


def comparison(before: Tables, after: Tables, task: str) -> list[tuple[str, str, str]]:
    """Return label, before and after, as text, for one task.

    Args:
        before: Task -> table of :func:`trainers.common.evaluate.table` for the start policy.
        after: The same for the trained policy.
        task: Environment id.
    """
    old, new = before.get(task, {}), after.get(task, {})
    rows = [(label, _text(key, old.get(key)), _text(key, new.get(key))) for label, key in ROWS]
    names = sorted({**old.get("families", {}), **new.get("families", {})}, key=lambda name: -_share(new, name))
    return rows + [
        (f"share of valid programs: {name}", f"{_share(old, name):.0%}", f"{_share(new, name):.0%}") for name in names
    ]


def _share(table: Mapping[str, Any], name: str) -> float:
    counts = table.get("families", {})
    return float(counts.get(name, 0) / sum(counts.values())) if counts else 0.0


def _text(key: str, value: Any) -> str:
    if not isinstance(value, int | float) or math.isnan(value):
        return "-"
    return f"{value:.0%}" if key.endswith("share") else f"{value:.4g}"
