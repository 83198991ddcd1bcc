"""Medals at their edges, and Kaggle's ranks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mle_gym.grading.grade import Thresholds
from mle_gym.grading.medals import above_median, leaderboard_thresholds, medal, percentile

HIGHER = Thresholds(gold=0.9, silver=0.8, bronze=0.7, median=0.6)
LOWER = Thresholds(gold=0.1, silver=0.2, bronze=0.3, median=0.4)


@pytest.mark.parametrize(
    ("score", "expected"),
    [(0.9, "gold"), (0.95, "gold"), (0.8999, "silver"), (0.8, "silver"), (0.7, "bronze"), (0.6999, ""), (math.nan, "")],
)
def test_medals_are_inclusive(score: float, expected: str) -> None:
    assert medal(score, HIGHER, True) == expected
    assert medal(1 - score, Thresholds(1 - 0.9, 1 - 0.8, 1 - 0.7, 0.4), False) == expected
    assert medal(score, None, True) == ""


def test_the_median_is_strict() -> None:
    assert not above_median(0.6, HIGHER, True)
    assert above_median(0.6001, HIGHER, True)
    assert not above_median(0.4, LOWER, False)
    assert above_median(0.3999, LOWER, False)


def test_percentile_counts_who_is_beaten() -> None:
    assert percentile(0.5, [0.1, 0.5, 0.9, 0.2], True) == 0.5
    assert percentile(0.5, [0.1, 0.5, 0.9, 0.2], False) == 0.25
    assert math.isnan(percentile(0.5, [], True))
    assert math.isnan(percentile(math.nan, [0.1], True))


@pytest.mark.parametrize(
    ("teams", "gold", "silver", "bronze"),
    [
        (1, 1, 1, 1),
        (9, 1, 1, 3),
        (99, 9, 19, 39),
        (100, 10, 20, 40),
        (249, 10, 49, 99),
        (250, 10, 50, 100),
        (999, 11, 50, 100),
        (1000, 12, 50, 100),
        (3834, 17, 191, 383),
    ],
)
def test_ranks_by_number_of_teams(teams: int, gold: int, silver: int, bronze: int) -> None:
    # The k-th best team has score k, so a threshold is its rank.
    board = np.random.default_rng(0).permutation(np.arange(1.0, teams + 1)).tolist()
    found = leaderboard_thresholds(board, higher_is_better=False)
    assert (found.gold, found.silver, found.bronze) == (gold, silver, bronze)
    assert found.median == (teams + 1) / 2
    mirrored = leaderboard_thresholds([-score for score in board], higher_is_better=True)
    assert (mirrored.gold, mirrored.silver, mirrored.bronze) == (-gold, -silver, -bronze)


def test_an_empty_board_has_no_thresholds() -> None:
    with pytest.raises(ValueError, match="empty"):
        leaderboard_thresholds([], True)
