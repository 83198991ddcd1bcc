"""RSNA Screening Mammography Breast Cancer Detection: does a breast have cancer?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv

_TEST_COLUMNS = [
    "site_id",
    "patient_id",
    "image_id",
    "laterality",
    "view",
    "age",
    "implant",
    "machine_id",
    "prediction_id",
]


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Probabilistic F1; with an empty cell it is 0, as in MLE-bench."""
    require_columns(submission, "prediction_id", "cancer")
    rows = aligned(submission, answers, "prediction_id")
    given = numbers(submission, "cancer", allow_nan=True, allow_inf=True)
    if (given < 0).all():
        raise InvalidSubmission("Column 'cancer': every cell is negative; expected probabilities in [0, 1].")
    chance = np.clip(numbers(rows, "cancer", allow_nan=True, allow_inf=True), 0.0, 1.0)
    truth = answers["cancer"].to_numpy() == 1
    hits = chance[truth].sum()
    if not hits > 0 or np.isnan(chance).any():
        return 0.0
    precision, recall = hits / chance.sum(), hits / truth.sum()
    return float(2 * precision * recall / (precision + recall))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the patients; a row of the answers is a breast, a row of the test table an image."""
    table = read_csv(raw / "train.csv")
    _, patients = split_rows(table["patient_id"].unique(), test_size=0.1, random_state=42)
    held = table["patient_id"].isin(patients)
    train, test = table[~held], table[held].copy()
    test["prediction_id"] = test["patient_id"].astype(str) + "_" + test["laterality"]
    for name, part in (("train_images", train), ("test_images", test)):
        files = [f"{patient}/{image}.dcm" for patient, image in zip(part["patient_id"], part["image_id"], strict=True)]
        copy_files((raw / "train_images" / file, public / name / file) for file in files)
    write_csv(train, public / "train.csv")
    write_csv(test[_TEST_COLUMNS], public / "test.csv")
    answers = test.groupby("prediction_id")[["cancer"]].first().reset_index()
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(cancer=train["cancer"].mean()), public / "sample_submission.csv")
