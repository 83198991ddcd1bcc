"""Plant Pathology 2021: which diseases does an apple leaf have?"""

from __future__ import annotations

import pandas as pd

from mle_gym.tasks.mlebench.multilabel import micro_f1


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Micro F1 of the labels."""
    return micro_f1(submission, answers, "image", "labels")
