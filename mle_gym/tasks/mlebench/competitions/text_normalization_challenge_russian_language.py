"""Text Normalization Challenge - Russian Language: how is each written token spoken?"""

from __future__ import annotations

import pandas as pd

from mle_gym.tasks.mlebench.text import token_accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of tokens that are right to the letter."""
    return token_accuracy(submission, answers, "id", "after")
