"""Plant Pathology 2021: which diseases does an apple leaf have?"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.multilabel import micro_f1


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Micro F1 of the labels."""
    return micro_f1(submission, answers, "image", "labels")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 20 % of the labelled leaves."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.2)
    for name, part in (("train_images", train), ("test_images", test)):
        copy_files((raw / "train_images" / image, public / name / image) for image in part["image"])
    write_csv(train, public / "train.csv")
    write_csv(test, private / "answers.csv")
    write_csv(test.assign(labels="healthy"), public / "sample_submission.csv")
