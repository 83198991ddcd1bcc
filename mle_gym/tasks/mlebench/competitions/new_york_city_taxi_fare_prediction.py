"""New York City Taxi Fare Prediction: the fare of a ride from where, when and for how many."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.checks import numbers, require_columns
from mle_gym.tasks.mlebench.regression import rmse, sorted_alike, sorted_part


def part(
    submission: pd.DataFrame, answers: pd.DataFrame, rows: NDArray[np.bool_]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Cut answers and submission, rows lined up as in :func:`grade`."""
    return sorted_part(submission, answers, rows, "key")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Root mean squared error."""
    require_columns(submission, "fare_amount", "key")
    numbers(submission, "fare_amount")
    predicted = numbers(sorted_alike(submission, answers, "key"), "fare_amount")
    return rmse((answers["fare_amount"].to_numpy(), predicted))
