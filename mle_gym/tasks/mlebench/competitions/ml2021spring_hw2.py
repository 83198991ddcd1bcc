"""ML2021Spring-hw2: which phoneme is spoken in a frame of speech?"""

from __future__ import annotations

import pandas as pd

from mle_gym.tasks.mlebench.metrics import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Accuracy."""
    return accuracy(submission, answers, "Id", "ClassId")
