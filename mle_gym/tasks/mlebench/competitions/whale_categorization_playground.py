"""Humpback Whale Identification Challenge: which whale does a fluke belong to?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.rankings import map_one_truth


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """MAP@5."""
    require_columns(submission, "Image", "Id")
    if surplus := [str(name) for name in submission.columns if name not in ("Image", "Id")]:
        raise InvalidSubmission(f"The submission has the column {surplus[0]!r}; expected Image and Id only.")
    return map_one_truth(submission, answers, "Image", "Id", 5)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out one photo of each whale that has two, and of the others, and of lone photos, 10 %."""
    table = read_csv(raw / "train.csv")
    side = pd.Series("", index=table.index, dtype=object)
    lone = np.random.default_rng(0)
    for _, photos in table.groupby("Id", sort=False):
        if len(photos) >= 2:
            side[photos.sample(2, random_state=0).index] = ["train", "test"]
        else:
            # Without replacement numpy draws in another way, though there is one draw only.
            side[photos.index] = lone.choice(["train", "test"], replace=False, p=[0.9, 0.1])
    rest = split_rows(table.index[side == ""], test_size=0.1)
    for name, rows in zip(("train", "test"), rest, strict=True):
        side[rows] = name
    train, test = table[side == "train"], table[side == "test"].copy()
    test.loc[~test["Id"].isin(train["Id"]), "Id"] = "new_whale"
    for name, part in (("train", train), ("test", test)):
        copy_files((raw / "train" / image, public / name / image) for image in part["Image"])
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    sample = test.assign(Id="new_whale w_1287fbc w_98baff9 w_7554f44 w_1eafe46")
    write_csv(sample, public / "sample_submission.csv")
