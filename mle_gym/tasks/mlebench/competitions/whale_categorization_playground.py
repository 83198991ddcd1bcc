"""Humpback Whale Identification Challenge: which whale does a fluke belong to?"""

from __future__ import annotations

import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns
from mle_gym.tasks.mlebench.rankings import map_one_truth


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """MAP@5."""
    require_columns(submission, "Image", "Id")
    if surplus := [str(name) for name in submission.columns if name not in ("Image", "Id")]:
        raise InvalidSubmission(f"The submission has the column {surplus[0]!r}; expected Image and Id only.")
    return map_one_truth(submission, answers, "Image", "Id", 5)
