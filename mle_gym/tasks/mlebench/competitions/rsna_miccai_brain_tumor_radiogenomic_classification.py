"""RSNA-MICCAI Brain Tumor Radiogenomic Classification: is a tumour's MGMT promoter methylated?"""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd

from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.metrics import binary_auc


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Area under the ROC curve."""
    return binary_auc(submission, answers, "BraTS21ID", "MGMT_value")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the patients."""
    train, test = split_rows(read_csv(raw / "train_labels.csv", dtype={"BraTS21ID": str}), test_size=0.1)
    for name, part in (("train", train), ("test", test)):
        for patient in part["BraTS21ID"]:
            shutil.copytree(raw / "train" / patient, public / name / patient)
    write_csv(train, public / "train_labels.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.assign(MGMT_value=0.5), public / "sample_submission.csv")
