"""Cdiscount's Image Classification Challenge: in which of 5,270 categories is a product, by its photos?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.labels import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of products in the right category."""
    return accuracy(submission, answers, "_id", "category_id", "the number of a category")
