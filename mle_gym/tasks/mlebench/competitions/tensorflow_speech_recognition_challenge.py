"""TensorFlow Speech Recognition Challenge: which word does a clip of one second hold?"""

from __future__ import annotations

import pandas as pd

from mle_gym.tasks.mlebench.metrics import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Accuracy."""
    return accuracy(submission, answers, "fname", "label")
