"""Dog Breed Identification: which of 120 breeds does a photo show?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.catalogue import catalogue
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.probabilities import class_log_loss, one_hot


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Log loss over the breeds."""
    return class_log_loss(submission, answers, "id", answers.columns.drop("id").tolist())


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled photos."""
    breeds = list(catalogue()["dog-breed-identification"].target)
    train, test = split_rows(read_csv(raw / "labels.csv"), test_size=0.1)
    write_csv(train, public / "labels.csv")
    answers = one_hot(test, "id", "breed", breeds)
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(**dict.fromkeys(breeds, 1 / 120)), public / "sample_submission.csv")
    for name, part in (("train", train), ("test", test)):
        copy_files((raw / "train" / f"{photo}.jpg", public / name / f"{photo}.jpg") for photo in part["id"])
