"""iMet Collection 2020: which attributes does a museum's object have?"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.multilabel import micro_f1


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Micro F1 of the attribute ids."""
    return micro_f1(submission, answers, "id", "attribute_ids")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 15 % of the labelled objects."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.15)
    copy_files([(raw / "labels.csv", public / "labels.csv")])
    for name, part in (("train", train), ("test", test)):
        copy_files((raw / "train" / f"{item}.png", public / name / f"{item}.png") for item in part["id"])
    write_csv(train, public / "train.csv")
    write_csv(test, private / "answers.csv")
    write_csv(test.assign(attribute_ids="0 1 2"), public / "sample_submission.csv")
