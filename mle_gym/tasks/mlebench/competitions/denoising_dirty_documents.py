"""Denoising Dirty Documents: clean the scan of a stained and creased page, pixel by pixel."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mle_gym.tasks.mlebench.frames import read_answers as read_table
from mle_gym.tasks.mlebench.regression import matched, rmse


def read_answers(path: Path) -> pd.DataFrame:
    """Read the pixels and name their page, so that the pixels of one page stay together when answers are cut."""
    answers = read_table(path)
    return answers.assign(page=answers["id"].str.partition("_")[0])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Root mean squared error over all pixels."""
    return rmse(matched(submission, answers, "id", "value"))
