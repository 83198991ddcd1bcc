"""iMet Collection 2020: which attributes does a museum's object have?"""

from __future__ import annotations

import pandas as pd

from mle_gym.tasks.mlebench.multilabel import micro_f1


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Micro F1 of the attribute ids."""
    return micro_f1(submission, answers, "id", "attribute_ids")
