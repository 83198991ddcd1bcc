"""PetFinder.my - Pawpularity Contest: how popular a pet's photo is."""

from __future__ import annotations

import pandas as pd

from mle_gym.tasks.mlebench.regression import matched, rmse


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Root mean squared error; scores outside of [1, 100] are refused."""
    return rmse(matched(submission, answers, "Id", "Pawpularity", low=1.0, high=100.0))
