"""Facebook Recruiting III - Keyword Extraction: which tags does a question have?"""

from __future__ import annotations

import pandas as pd

from mle_gym.tasks.mlebench.multilabel import micro_f1


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """F1 over all pairs of question and tag; tags that no answer has are ignored."""
    return micro_f1(submission, answers, "Id", "Tags")
