"""Freesound Audio Tagging 2019: which of 80 sounds does a clip hold?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns

_ROWS = 1 << 16
"""Rows that are ranked at once."""


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Label-weighted label-ranking average precision (lwlrap).

    It equals scikit-learn's ``label_ranking_average_precision_score`` with the numbers of labels as weights, which
    takes 60 times as long: the mean over all labels that are there of the precision at the label's rank.
    """
    require_columns(submission, *map(str, answers.columns), exact=True)
    rows = aligned(submission, answers, "fname")
    classes = list(answers.columns[1:])
    for name in classes:
        numbers(submission, name)
    scores = np.column_stack([numbers(rows, name) for name in classes])
    truth = answers[classes].to_numpy() > 0
    total = 0.0
    for start in range(0, len(truth), _ROWS):
        part, score = truth[start : start + _ROWS], scores[start : start + _ROWS]
        row, label = np.nonzero(part)
        above = score[row] >= score[row, label][:, None]
        total += float(((above & part[row]).sum(axis=1) / above.sum(axis=1)).sum())
    return total / max(int(truth.sum()), 1)
