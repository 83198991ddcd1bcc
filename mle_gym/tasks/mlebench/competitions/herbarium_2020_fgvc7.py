"""Herbarium 2020: of which species is a dried plant on a herbarium sheet?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.per_category import herbarium_score


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean F1 over species."""
    return herbarium_score(submission, answers)
