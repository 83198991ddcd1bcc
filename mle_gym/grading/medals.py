"""Medals and percentiles from scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mle_gym.grading.grade import Thresholds

__all__ = ["above_median", "leaderboard_thresholds", "medal", "percentile", "percentile_from_thresholds"]


def _at_least(score: float, bar: float, higher_is_better: bool) -> bool:
    return score >= bar if higher_is_better else score <= bar


def medal(score: float, thresholds: Thresholds | None, higher_is_better: bool) -> str:
    """Return ``gold``, ``silver``, ``bronze`` or ``""``.

    Thresholds are inclusive and the best medal counts. NaN, and a task without thresholds, earn none.
    """
    if thresholds is None or math.isnan(score):
        return ""
    for name, bar in (("gold", thresholds.gold), ("silver", thresholds.silver), ("bronze", thresholds.bronze)):
        if _at_least(score, bar, higher_is_better):
            return name
    return ""


def above_median(score: float, thresholds: Thresholds, higher_is_better: bool) -> bool:
    """Whether the score is strictly better than the median."""
    return score > thresholds.median if higher_is_better else score < thresholds.median


def percentile(score: float, leaderboard: Sequence[float], higher_is_better: bool) -> float:
    """Share of a leaderboard that the score beats strictly, in [0, 1]; nan for an empty board or a NaN score."""
    if not len(leaderboard) or math.isnan(score):
        return float("nan")
    board = np.asarray(leaderboard, dtype=np.float64)
    return float(np.mean(board < score if higher_is_better else board > score))


def leaderboard_thresholds(leaderboard: Sequence[float], higher_is_better: bool) -> Thresholds:
    """Return Kaggle's medal thresholds for a private leaderboard.

    The ranks are those of MLE-bench (Chan et al. 2024, Table 1): with N teams, gold is the top 10 % (N < 100),
    the top 10 (N < 250), or the top 10 + 0.2 % N; silver the top 20 %, the top 20 %, the top 50 (N < 1000) or the
    top 5 %; bronze the top 40 %, the top 40 %, the top 100 or the top 10 %. Shares are rounded down, ranks are at
    least 1. The median is the board's median.

    Raises:
        ValueError: The board is empty.
    """
    n = len(leaderboard)
    if n == 0:
        raise ValueError("The leaderboard is empty; thresholds need at least one score.")
    if n < 100:
        ranks = (n // 10, n // 5, n * 2 // 5)
    elif n < 250:
        ranks = (10, n // 5, n * 2 // 5)
    elif n < 1000:
        ranks = (10 + n // 500, 50, 100)
    else:
        ranks = (10 + n // 500, n // 20, n // 10)
    board = sorted((float(score) for score in leaderboard), reverse=higher_is_better)
    gold, silver, bronze = (board[max(1, rank) - 1] for rank in ranks)
    return Thresholds(gold=gold, silver=silver, bronze=bronze, median=float(np.median(board)))


def percentile_from_thresholds(score: float, thresholds: Thresholds, higher_is_better: bool) -> float:
    """Estimate the share of a leaderboard that a score beats from the four scores that are known of it.

    Monotone: linear between median (0.5), bronze (0.9), silver (0.95) and gold (0.99), the ranks of a large board;
    below the median it falls from 0.5 towards 0 with the distance, measured in the width between median and gold.

    Returns:
        In [0, 1); nan for a NaN score.
    """
    if math.isnan(score):
        return float("nan")
    sign = 1.0 if higher_is_better else -1.0
    bars = [sign * b for b in (thresholds.median, thresholds.bronze, thresholds.silver, thresholds.gold)]
    value = sign * score
    if value < bars[0]:
        width = max(bars[3] - bars[0], 1e-12)
        return 0.5 / (1.0 + (bars[0] - value) / width)
    if value >= bars[3]:
        return 0.99
    return float(np.interp(value, bars, (0.5, 0.9, 0.95, 0.99)))
