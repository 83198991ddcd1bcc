"""RSNA-MICCAI Brain Tumor Radiogenomic Classification: is a tumour's MGMT promoter methylated?"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import dicom_bytes, ellipse, split_labels
from mle_gym.tasks.mlebench.metrics import binary_auc

_BRAIN = {"FLAIR": 900, "T1w": 1300, "T1wCE": 1250, "T2w": 1100}
"""Scans, and how bright the brain is in them."""


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


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Slices of 24 x 24 pixels; a methylated tumour has a fainter rim in T1wCE and more swelling in FLAIR."""
    patients = {"tiny": 240, "small": 500}[size]
    labels = split_labels(rng, patients, (0.48, 0.52))
    ids = [f"{number:05d}" for number in np.sort(rng.choice(1010, patients, replace=False))]
    shape, image = (24, 24), 0
    for patient, label in zip(ids, labels, strict=True):
        at, radius = rng.uniform(8, 16, 2), rng.uniform(2.5, 5)
        rim = rng.normal(900 - 200 * label, 260)
        swelling = rng.normal(2.0 + 0.5 * label, 0.7)
        for scan, brain in _BRAIN.items():
            folder = raw / "train" / patient / scan
            folder.mkdir(parents=True)
            for number in range(1, 3 if scan == "T1wCE" else 2):
                head = ellipse(shape, (12 + rng.normal(0, 0.3), 12), (11, 9.5)) > 0
                tumour = ellipse(shape, tuple(at), (radius, radius * rng.uniform(0.9, 1.1)))
                pixels = np.where(head, brain + rng.normal(0, 80, shape), rng.normal(30, 10, shape))
                if scan == "T1wCE":
                    pixels[head & (np.abs(tumour) < 0.25)] += rim
                elif scan != "T1w":
                    pixels[head & (ellipse(shape, tuple(at), (radius + swelling,) * 2) > 0)] += 500
                pixels[head & (tumour > 0.25)] -= 350
                content = dicom_bytes(
                    pixels, image, PatientID=patient, Modality="MR", SeriesDescription=scan, InstanceNumber=number
                )
                (folder / f"Image-{number}.dcm").write_bytes(content)
                image += 1
    write_csv(pd.DataFrame({"BraTS21ID": ids, "MGMT_value": labels}), raw / "train_labels.csv")
