"""Billion Word Imputation: which word is missing from a sentence, and where?"""

from __future__ import annotations

import pandas as pd

from mle_gym.tasks.mlebench.text import mean_text_distance


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean Levenshtein distance in characters."""
    return mean_text_distance(submission, answers, "id", "sentence", text_only=True)
