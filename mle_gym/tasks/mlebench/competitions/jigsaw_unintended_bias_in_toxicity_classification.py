"""Jigsaw Unintended Bias in Toxicity Classification: is a comment toxic, whoever it speaks of?"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, write_csv
from mle_gym.tasks.mlebench.probabilities import columns_auc

IDENTITIES = (
    "male",
    "female",
    "homosexual_gay_or_lesbian",
    "christian",
    "jewish",
    "muslim",
    "black",
    "white",
    "psychiatric_or_mental_illness",
)
POWER = -5.0


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean of the overall AUC and of three power means over identities of AUCs; predictions count as >= 0.5 or not."""
    column = "toxicity" if "prediction" not in submission.columns and "toxicity" in submission.columns else "prediction"
    require_columns(submission, "id", column)
    if "toxicity" in submission.columns and column == "prediction":
        raise InvalidSubmission("The submission has both columns 'prediction' and 'toxicity'; expected one of them.")
    numbers(submission, column, allow_nan=True, allow_inf=True)
    rows = aligned(submission, answers, "id")
    guess = (numbers(rows, column, allow_nan=True, allow_inf=True) >= 0.5).astype(np.int64)
    toxic = (answers["toxicity"].to_numpy() >= 0.5).astype(np.int64)
    means = [_auc(toxic, guess, np.ones(len(toxic), dtype=np.bool_), "toxicity")]
    members = [(answers[name].to_numpy(dtype=np.float64) >= 0.5) for name in IDENTITIES]
    for side in (None, 1, 0):
        # Within a group; its harmless and others' toxic comments; its toxic and others' harmless comments.
        parts = [member if side is None else (toxic == 1 - side) == member for member in members]
        aucs = np.array([_auc(toxic, guess, part, name) for part, name in zip(parts, IDENTITIES, strict=True)])
        means.append(float(np.mean(aucs**POWER) ** (1 / POWER)))
    return float(np.mean(means))


def _auc(toxic: NDArray[np.int64], guess: NDArray[np.int64], part: NDArray[np.bool_], name: str) -> float:
    return columns_auc(toxic[part, None], guess[part, None].astype(np.float64), [name])


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Kaggle's private test set, which was published later with its labels."""
    shutil.copyfile(raw / "test_private_expanded.csv", private / "test.csv")
    shutil.copyfile(raw / "train.csv", public / "train.csv")
    test = read_csv(raw / "test_private_expanded.csv", usecols=["id", "comment_text"])
    write_csv(test, public / "test.csv")
    write_csv(test[["id"]].assign(prediction=0.0), public / "sample_submission.csv")
