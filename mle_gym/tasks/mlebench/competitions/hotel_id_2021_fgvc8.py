"""Hotel-ID 2021: in which hotel was a photo of a room taken?"""

from __future__ import annotations

import pandas as pd

from mle_gym.tasks.mlebench.rankings import map_one_truth


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """MAP@5."""
    return map_one_truth(submission, answers, "image", "hotel_id", 5)
