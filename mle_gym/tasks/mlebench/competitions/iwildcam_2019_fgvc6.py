"""iWildCam 2019: which animal did a camera trap see, at places that are not in the training data?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.labels import id_pairs, integer_label, macro_f1, parsed_labels


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean F1 over classes; ids repeat, and rows with the same id are paired in their order."""
    require_columns(submission, "Id", "Category")
    mine, theirs = id_pairs(submission, answers, "Id")
    predicted = parsed_labels(submission, "Category", integer_label, "the number of a category")
    return macro_f1(answers["Category"].to_numpy()[theirs], predicted[mine])
