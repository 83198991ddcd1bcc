"""Explore Multi-Label Classification with an Enzyme Substrate Dataset: which enzymes act on a molecule?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns
from mle_gym.tasks.mlebench.regression import prepare_table

TARGETS = ("EC1", "EC2")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean area under the ROC curve of EC1 and EC2; any finite numbers rank."""
    from sklearn.metrics import roc_auc_score

    require_columns(submission, "id", *TARGETS)
    rows = aligned(submission, answers, "id")
    for target in TARGETS:
        numbers(submission, target)
        if answers[target].nunique() < 2:
            raise InvalidSubmission(f"Column {target!r}: the answers hold one class only, so there is no ROC curve.")
    return float(np.mean([roc_auc_score(answers[target], numbers(rows, target)) for target in TARGETS]))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the molecules."""
    hidden = [f"EC{number}" for number in range(1, 7)]
    prepare_table(raw, public, private, "id", hidden, TARGETS, 0.5)
