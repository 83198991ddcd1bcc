"""INGV - Volcanic Eruption Prediction: how long until a volcano erupts, from ten minutes of ten seismometers."""

from __future__ import annotations

import math

import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.regression import merged


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean absolute error, rounded to a whole number; a segment that stands twice counts twice."""
    from sklearn.metrics import mean_absolute_error

    pair, _ = merged(submission, answers, "segment_id", "time_to_eruption")
    error = float(mean_absolute_error(*pair))
    if math.isinf(error):
        raise InvalidSubmission("Column 'time_to_eruption': its numbers are too large to add up; expected microseconds.")
    return float(round(error))
