"""Learning Agency Lab - Automated Essay Scoring 2.0: how good is a student's essay, from 1 to 6?"""

from __future__ import annotations

import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, require_columns
from mle_gym.tasks.mlebench.labels import quadratic_kappa, whole_numbers


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Cohen's kappa with quadratic weights."""
    require_columns(submission, "essay_id", "score")
    rows = aligned(submission, answers, "essay_id")
    whole_numbers(submission, "score")
    return quadratic_kappa(answers["score"].to_numpy(), whole_numbers(rows, "score"))
