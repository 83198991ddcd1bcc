"""RSNA Screening Mammography Breast Cancer Detection: does a breast have cancer?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import dicom_bytes, ellipse, split_labels

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


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Mammograms of 40 x 32 pixels, two of each breast; a cancer is a small bright spot, seen in both."""
    patients = {"tiny": 160, "small": 400}[size]
    sick = split_labels(rng, patients, (0.8, 0.1, 0.1), random_state=42)
    ids = np.sort(rng.choice(65_000, patients, replace=False))
    images = iter(rng.choice(2_000_000_000, 4 * patients, replace=False).tolist())
    rows = []
    for patient, which in zip(ids.tolist(), sick, strict=True):
        site, machine = (1, 49) if rng.random() < 0.55 else (2, int(rng.choice([29, 48])))
        age, density = float(np.clip(round(rng.normal(58 + 5 * (which > 0), 9)), 26, 89)), rng.uniform(0.2, 1)
        folder = raw / "train_images" / str(patient)
        folder.mkdir(parents=True)
        for side, laterality in enumerate("LR", start=1):
            cancer = int(which == side)
            place = (rng.uniform(10, 30), rng.uniform(6, 16))
            biopsy = int(cancer or rng.random() < 0.03)
            grade = float(rng.choice([0, 1, 2], p=[0.8, 0.1, 0.1] if biopsy else [0.08, 0.52, 0.4]))
            hard = not cancer and rng.random() < 0.12
            for view in ("CC", "MLO"):
                image = next(images)
                pixels = _breast(rng, density, place if cancer else None)
                pixels = pixels[:, ::-1] if laterality == "R" else pixels
                content = dicom_bytes(pixels, image, PatientID=str(patient), Modality="MG", ImageLaterality=laterality)
                (folder / f"{image}.dcm").write_bytes(content)
                mine = {"site_id": site, "patient_id": patient, "image_id": image, "laterality": laterality}
                mine |= {"view": view, "age": age, "cancer": cancer, "biopsy": biopsy}
                mine |= {"invasive": int(cancer and rng.random() < 0.7), "BIRADS": grade if site == 1 else np.nan}
                mine |= {"implant": 0, "density": "ABCD"[min(int(4 * density), 3)] if site == 1 else None}
                rows.append(mine | {"machine_id": machine, "difficult_negative_case": hard})
    write_csv(pd.DataFrame(rows), raw / "train.csv")


def _breast(rng: np.random.Generator, density: float, tumour: tuple[float, float] | None) -> NDArray[np.float64]:
    inside = ellipse((40, 32), (20 + rng.normal(), 0), (17 + rng.normal(), 24 + rng.normal()))
    tissue = ellipse((40, 32), (rng.uniform(14, 26), rng.uniform(6, 14)), (9, 7), rng.uniform(0, 3)).clip(0)
    pixels = 900 + 1000 * density * tissue + rng.normal(0, 110, inside.shape)
    spots = [(rng.uniform(8, 32), rng.uniform(4, 18))] if rng.random() < 0.25 else []  # harmless ones
    for at in spots if tumour is None else [*spots, (tumour[0] + rng.normal(), tumour[1] + rng.normal())]:
        pixels += rng.uniform(350, 1300) * ellipse(inside.shape, at, tuple(rng.uniform(2, 4, 2))).clip(0)
    return np.where(inside > 0, pixels, rng.normal(60, 20, inside.shape))
