"""Paddy Doctor: which disease does a photo of a rice plant show?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.labels import labels, same_share


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of photos with the right label; an empty cell is a wrong one."""
    require_columns(submission, "image_id", "label")
    cells = submission["label"]
    if cells.isna().all() or any(isinstance(cell, str) for cell in cells):
        submission = submission.assign(label=cells.astype(object).where(cells.notna(), ""))
    predicted = labels(submission, "label", "the name of a disease")
    rows = aligned(submission.assign(label=predicted), answers, "image_id")
    return same_share(labels(answers, "label"), labels(rows, "label"), "label", "the name of a disease")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 25 % of the labelled photos."""
    train, test = split_rows(read_csv(raw / "train.csv"), train_size=0.75)
    photos = raw / "train_images"
    copy_files((photos / label / name, public / "train_images" / label / name) for name, label in _photos(train))
    copy_files((photos / label / name, public / "test_images" / name) for name, label in _photos(test))
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test[["image_id"]].assign(label=""), public / "sample_submission.csv")
