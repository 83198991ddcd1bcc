"""Mean relative improvement over a baseline, task by task, with missing cells named and not forgotten."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["Improvement", "Missing", "best_per_task", "relative_improvement"]

Missing = Literal["drop", "zero", "raise"]
"""A task without one of the two scores is left out, counts as no improvement, or is an error."""
Scores = Mapping[str, float | None]


@dataclass(frozen=True)
class Improvement:
    """How much better scores are than a baseline's."""

    mean: float
    """Mean over the tasks that count; nan for none."""
    by_task: Mapping[str, float]
    """The tasks that count."""
    missing: Mapping[str, str]
    """Task without a number -> why; with ``zero`` it stands in ``by_task``, too, as 0."""
    wins: int
    """Tasks with both scores where ours is better."""


def relative_improvement(
    scores: Scores, baseline: Scores, higher_is_better: Mapping[str, bool], *, missing: Missing = "drop"
) -> Improvement:
    r"""Compare two sets of scores.

    .. math:: \frac{1}{|T|} \sum_{t \in T} \sigma_t \frac{s_t - b_t}{|b_t|}

    :math:`\sigma_t` is 1 where higher is better, else -1. It says by how much of the *baseline's* score ours is better:
    0.9 over 0.8 is +12.5 %, a loss of 0.1 instead of 0.4 is +75 %.

    Args:
        scores: Ours; None and nan are missing, like an absent key.
        baseline: Theirs.
        higher_is_better: Direction of each task that is to be compared; other tasks are ignored.
        missing: What a task without one of the scores, or with a baseline of 0, counts.

    Raises:
        ValueError: ``missing`` is "raise" and a task is missing, or it is no known rule.
    """
    if missing not in get_args(Missing):
        raise ValueError(f"missing={missing!r} is not known; choose from {', '.join(get_args(Missing))}.")
    found: dict[str, float] = {}
    without: dict[str, str] = {}
    wins = 0
    for task, higher in higher_is_better.items():
        ours, theirs = _number(scores.get(task)), _number(baseline.get(task))
        if math.isnan(ours) or math.isnan(theirs):
            without[task] = " and ".join(
                name for name, value in (("no score", ours), ("no baseline", theirs)) if math.isnan(value)
            )
        else:
            gain = ours - theirs if higher else theirs - ours
            wins += gain > 0
            if theirs == 0:
                without[task] = "baseline 0"
            else:
                found[task] = gain / abs(theirs)
    if without and missing == "raise":
        task, why = next(iter(without.items()))
        raise ValueError(f"{task} has {why}, so there is no relative improvement; drop such tasks or count them as 0.")
    if missing == "zero":
        found |= dict.fromkeys(without, 0.0)
    mean = math.fsum(found.values()) / len(found) if found else math.nan
    return Improvement(mean, found, without, wins)


def best_per_task(columns: Iterable[Scores], higher_is_better: Mapping[str, bool]) -> dict[str, float]:
    """Return the best score of each task over several columns; a task that nobody has is absent."""
    columns = list(columns)
    best: dict[str, float] = {}
    for task, higher in higher_is_better.items():
        known = [value for column in columns if not math.isnan(value := _number(column.get(task)))]
        if known:
            best[task] = max(known) if higher else min(known)
    return best


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
