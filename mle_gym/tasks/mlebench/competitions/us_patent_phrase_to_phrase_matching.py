"""U.S. Patent Phrase to Phrase Matching: how similar two phrases are in the context of a class of patents."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.regression import matched, prepare_table


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Pearson correlation; nan, which is valid, where a score is no finite number or all are the same."""
    from scipy.stats import pearsonr

    truth, predicted = matched(submission, answers, "id", "score", allow_nan=True, allow_inf=True)
    if len(truth) < 2:
        raise InvalidSubmission(f"The answers have {len(truth)} row, too few for a correlation.")
    if not np.isfinite(predicted).all() or np.ptp(predicted) == 0:
        return float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a nearly constant column is no reason to stop
        return float(pearsonr(truth, predicted).statistic)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the pairs."""
    prepare_table(raw, public, private, "id", ("score",), ("score",), 0)
