"""Movie Review Sentiment Analysis: how positive is a phrase, from 0 to 4?"""

from __future__ import annotations

import pandas as pd

from mle_gym.tasks.mlebench.metrics import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of phrases with the right label."""
    return accuracy(submission, answers, "PhraseId", "Sentiment")
