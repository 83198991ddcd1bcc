"""Predicting Molecular Properties: the magnetic coupling of two atoms of a molecule."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.regression import merged


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean over types of coupling of the logarithm of the mean absolute error; -inf if a type is without error."""
    from sklearn.metrics import mean_absolute_error

    (truth, predicted), rows = merged(submission, answers, "id", "scalar_coupling_constant")
    errors = [mean_absolute_error(truth[at], predicted[at]) for at in rows.groupby("type").indices.values()]
    with np.errstate(divide="ignore"):
        return float(np.mean(np.log(errors)))
