"""iWildCam 2020: which animal did a camera trap see, at places that are not in the training data?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.labels import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of photos in the right category."""
    return accuracy(submission, answers, "Id", "Category", "the number of a category")
