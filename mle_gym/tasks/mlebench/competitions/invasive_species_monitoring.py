"""Invasive Species Monitoring: does a photo from a forest show hydrangea, which does not belong there?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import write_zip
from mle_gym.tasks.mlebench.metrics import binary_auc
from mle_gym.tasks.mlebench.pictures import class_looks, class_photo, mixed_up


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Area under the ROC curve."""
    return binary_auc(submission, answers, "name", "invasive")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 20 % of the labels; as in MLE-bench the two archives of photos hold an empty folder each."""
    import py7zr

    train, test = split_rows(read_csv(raw / "train_labels.csv.zip"), test_size=0.2)
    sample = test.assign(invasive=0.5)
    write_csv(test, private / "answers.csv")
    write_csv(sample, private / "sample_submission.csv")
    write_zip(public / "train_labels.csv.zip", {"train_labels.csv": train.to_csv(index=False)})
    write_zip(public / "sample_submission.csv.zip", {"sample_submission.csv": sample.to_csv(index=False)})
    empty = raw / "empty"
    empty.mkdir()
    for name in ("train", "test"):
        with py7zr.SevenZipFile(public / f"{name}.7z", "w") as archive:
            archive.write(empty, name)


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Photos numbered along a walk, on which the shrubs come in patches: neighbours mostly show the same."""
    import py7zr

    rows = {"tiny": 200, "small": 1500}[size]
    bush = (np.cumsum(rng.random(rows) < 1 / 12) + rng.integers(2)) % 2
    labels = mixed_up(rng, bush, 2, 0.15)
    looks = class_looks(rng, 2)
    with py7zr.SevenZipFile(raw / "train.7z", "w") as archive:
        for row, label in enumerate(labels, start=1):
            archive.writestr(class_photo(rng, looks[label], 24), f"train/{row}.jpg")
    table = pd.DataFrame({"name": np.arange(1, rows + 1), "invasive": labels})
    write_zip(raw / "train_labels.csv.zip", {"train_labels.csv": table.to_csv(index=False)})
