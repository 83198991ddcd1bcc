"""ALASKA2 Image Steganalysis: does a photo hide a message?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns

BANDS = ((0.0, 0.4, 2.0), (0.4, 1.0, 1.0))
"""From, to, weight: the area counts double where the true positive rate is at most 0.4."""


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Weighted area under the ROC curve."""
    from sklearn.metrics import auc, roc_curve

    require_columns(submission, "Id", "Label")
    rows = aligned(submission, answers, "Id")
    numbers(submission, "Label")
    if answers["Label"].nunique() < 2:
        raise InvalidSubmission("The answers hold one class only, so there is no ROC curve.")
    false, true, _ = roc_curve(answers["Label"], numbers(rows, "Label"))
    cuts = np.array([0.0, 0.4, 1.0])
    at = np.searchsorted(true, cuts, side="right")
    false = np.insert(false, at, np.interp(cuts, true, false))
    true = np.insert(true, at, cuts)
    area = 0.0
    for low, high, weight in BANDS:
        band = (low <= true) & (true <= high)
        x, y = np.append(false[band], 1.0), np.append(true[band], high) - low
        area += weight * auc(x, y)
    return float(area / sum((high - low) * weight for low, high, weight in BANDS))
