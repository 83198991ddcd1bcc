"""Leaf Classification: which of 99 plant species is a leaf from?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.catalogue import catalogue
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, extract, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.probabilities import class_log_loss, one_hot, require_only


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Log loss over the species; no other columns are allowed."""
    species = answers.columns.drop("id").tolist()
    require_only(submission, ["id", *species])
    return class_log_loss(submission, answers, "id", species)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled leaves; the pictures of both parts lie in one folder."""
    species = list(catalogue()["leaf-classification"].target)
    extract(raw / "train.csv.zip", raw)
    pictures = extract(raw / "images.zip", raw) / "images"
    whole = read_csv(raw / "train.csv")
    train, test = split_rows(whole, test_size=0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="species"), public / "test.csv")
    answers = one_hot(test, "id", "species", species)
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(**dict.fromkeys(species, 1 / 99)), public / "sample_submission.csv")
    copy_files((pictures / f"{leaf}.jpg", public / "images" / f"{leaf}.jpg") for leaf in whole["id"])
