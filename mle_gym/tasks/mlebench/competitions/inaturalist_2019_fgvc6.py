"""iNaturalist 2019: which of 1,010 species does a photo show?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.labels import first_token_label, parsed_labels


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of photos whose first predicted category is wrong."""
    require_columns(submission, "id", "predicted")
    expected = "a whole number, or several with the best first, and no empty or decimal cell in the whole column"
    predicted = parsed_labels(submission, "predicted", first_token_label, expected)
    rows = aligned(submission.assign(predicted=predicted), answers, "id")
    return float(1.0 - np.mean(answers["predicted"].to_numpy() == rows["predicted"].to_numpy()))
