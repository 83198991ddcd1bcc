"""Spaceship Titanic: which passengers were carried off to another dimension?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.labels import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of passengers with the right answer."""
    return accuracy(submission, answers, "PassengerId", "Transported", "True or False")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled passengers."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.drop(columns="Transported"), public / "test.csv")
    write_csv(test[["PassengerId"]].assign(Transported=False), public / "sample_submission.csv")
