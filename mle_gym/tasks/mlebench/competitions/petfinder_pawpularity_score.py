"""PetFinder.my - Pawpularity Contest: how popular a pet's photo is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.files import copy_files, write_csv
from mle_gym.tasks.mlebench.regression import matched, prepare_table, rmse


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Root mean squared error; scores outside of [1, 100] are refused."""
    return rmse(matched(submission, answers, "Id", "Pawpularity", low=1.0, high=100.0))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the photos; the sample submission is random."""
    train, test = prepare_table(raw, public, private, "Id", ("Pawpularity",), ("Pawpularity",), 0.0)
    random = np.random.default_rng(0).uniform(1, 100, len(test)).round(2)
    write_csv(test[["Id"]].assign(Pawpularity=random), public / "sample_submission.csv")
    for name, part in (("train", train), ("test", test)):
        copy_files((raw / "train" / f"{pet}.jpg", public / name / f"{pet}.jpg") for pet in part["Id"])
