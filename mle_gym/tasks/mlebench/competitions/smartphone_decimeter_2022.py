"""Google Smartphone Decimeter Challenge 2022: where a car drove, from a phone's satellite signals."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import numbers, require_columns, require_rows, say

COLUMNS = ("tripId", "UnixTimeMillis", "LatitudeDegrees", "LongitudeDegrees")
EARTH_RADIUS = 6_371_000.0
"""Metres."""


def _metres(here: NDArray[np.float64], there: NDArray[np.float64]) -> NDArray[np.float64]:
    """Great-circle distances, shape ``(rows,)``, between places, degrees, shape ``(2, rows)``."""
    (lat, lon), (other_lat, other_lon) = np.radians(here), np.radians(there)
    half = (
        np.sin((other_lat - lat) / 2.0) ** 2 + np.cos(lat) * np.cos(other_lat) * np.sin((other_lon - lon) / 2.0) ** 2
    )
    return np.asarray(EARTH_RADIUS * 2.0 * np.arctan2(np.sqrt(half), np.sqrt(1.0 - half)))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean over trips of the mean of the median and the 95th percentile of the distance; rows in file order."""
    require_columns(submission, *COLUMNS)
    require_rows(submission, len(answers))
    found = np.array([numbers(submission, column, allow_nan=True, allow_inf=True) for column in COLUMNS[2:]])
    truth = answers[list(COLUMNS[2:])].to_numpy(dtype=np.float64).T
    mine, theirs = submission["tripId"].to_numpy(dtype=object), answers["tripId"].to_numpy(dtype=object)
    scores = []
    for trip in dict.fromkeys(theirs.tolist()):
        here, there = mine == trip, theirs == trip
        if here.sum() != there.sum():
            raise InvalidSubmission(
                f"Column 'tripId': {say(trip)} stands in {here.sum():,} rows; expected it in {there.sum():,}."
            )
        with np.errstate(invalid="ignore"):
            metres = _metres(found[:, here], truth[:, there])
            scores.append(np.mean(np.quantile(metres, (0.5, 0.95))))
    return float(np.mean(scores))
