"""RSNA Screening Mammography Breast Cancer Detection: does a breast have cancer?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Probabilistic F1; with an empty cell it is 0, as in MLE-bench."""
    require_columns(submission, "prediction_id", "cancer")
    rows = aligned(submission, answers, "prediction_id")
    numbers(submission, "cancer", allow_nan=True, allow_inf=True)
    chance = np.clip(numbers(rows, "cancer", allow_nan=True, allow_inf=True), 0.0, 1.0)
    truth = answers["cancer"].to_numpy() == 1
    hits = chance[truth].sum()
    if not hits > 0 or np.isnan(chance).any():
        return 0.0
    precision, recall = hits / chance.sum(), hits / truth.sum()
    return float(2 * precision * recall / (precision + recall))
