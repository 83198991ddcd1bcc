"""Metrics that several competitions share, with the checks that go with them."""

from __future__ import annotations

import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns

__all__ = ["binary_auc"]


def binary_auc(submission: pd.DataFrame, answers: pd.DataFrame, id_column: str, target: str) -> float:
    """Area under the ROC curve of one column of probabilities, rows matched by id.

    Raises:
        InvalidSubmission: A column or an id is missing, an id stands twice, or a cell is no number in [0, 1].
    """
    from sklearn.metrics import roc_auc_score

    require_columns(submission, id_column, target)
    rows = aligned(submission, answers, id_column)
    numbers(submission, target, low=0.0, high=1.0)
    if answers[target].nunique() < 2:
        raise InvalidSubmission("The answers hold one class only, so there is no ROC curve.")
    return float(roc_auc_score(answers[target], rows[target]))
