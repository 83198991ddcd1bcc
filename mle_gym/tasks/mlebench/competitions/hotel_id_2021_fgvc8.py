"""Hotel-ID 2021: in which hotel was a photo of a room taken?"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.rankings import map_one_truth

_BROKEN = "ce27d36c9147cc19.jpg"
"""A photo that MLE-bench leaves out."""


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """MAP@5."""
    return map_one_truth(submission, answers, "image", "hotel_id", 5)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the photos; test photos lie in one folder, training photos in a folder for each chain."""
    table = read_csv(raw / "train.csv")
    train, test = split_rows(table[table["image"] != _BROKEN], test_size=0.1)
    for name, part in (("train_images", train), ("test_images", test)):
        for image, chain in zip(part["image"], part["chain"], strict=True):
            place = public / name if part is test else public / name / str(chain)
            copy_files([(raw / "train_images" / str(chain) / image, place / image)])
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    sample = test[["image"]].assign(hotel_id="36363 53586 18807 64314 60181")
    write_csv(sample, public / "sample_submission.csv")
