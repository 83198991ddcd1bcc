"""OSIC Pulmonary Fibrosis Progression: how a patient's lung capacity declines, and how sure one is."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import numbers, require_columns, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import dicom_bytes, ellipse


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean modified Laplace log likelihood over the last three measurements of each patient, as far as predicted."""
    require_columns(submission, "Patient_Week", "FVC", "Confidence")
    if not len(submission):
        raise InvalidSubmission("The submission has no rows; expected those of the sample submission.")
    known = submission["Patient_Week"].isin(answers["Patient_Week"]).to_numpy()
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        raise InvalidSubmission(
            f"Column 'Patient_Week', row {row + 1}: {say(submission['Patient_Week'].iloc[row])} is no week of a test "
            "patient; expected ids of the sample submission."
        )
    fvc, confidence = (numbers(submission, name, allow_nan=True, allow_inf=True) for name in ("FVC", "Confidence"))
    measured = answers[answers["FVC"].notna()].sort_values("Weeks", kind="stable")
    scored = measured.groupby("Patient").tail(3)[["Patient_Week", "FVC"]].rename(columns={"FVC": "truth"})
    found = pd.DataFrame({"Patient_Week": submission["Patient_Week"], "fvc": fvc, "sigma": confidence})
    rows = found.merge(scored, on="Patient_Week")
    sigma = np.maximum(rows["sigma"].fillna(0.0), 70.0)
    delta = np.minimum(np.abs(rows["truth"] - rows["fvc"]), 1000.0)
    # pandas leaves nan out of a mean: a measurement without a prediction does not count.
    return float((-math.sqrt(2.0) * delta / sigma - np.log(math.sqrt(2.0) * sigma)).mean())


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the patients; of theirs the first visit is public, and every week can be predicted."""
    visits = read_csv(raw / "train.csv")
    patients = list(visits.groupby("Patient").indices.items())
    parts = split_rows(patients, test_size=0.1)
    train, test = (visits.iloc[np.concatenate([rows for _, rows in part])] for part in parts)
    for name, part in zip(("train", "test"), parts, strict=True):
        scans = (path for patient, _ in part for path in (raw / "train" / patient).rglob("*") if path.is_file())
        copy_files((path, public / name / path.relative_to(raw / "train")) for path in scans)
    write_csv(train, public / "train.csv")
    write_csv(test.groupby("Patient").head(1).sort_values("Patient"), public / "test.csv")
    weeks = range(test["Weeks"].min(), test["Weeks"].max() + 1)
    every = pd.DataFrame({"Patient": test["Patient"].unique()}).merge(pd.DataFrame({"Weeks": weeks}), how="cross")
    answers = every.merge(test, on=["Patient", "Weeks"], how="left")
    answers["Patient_Week"] = answers["Patient"] + "_" + answers["Weeks"].astype(str)
    answers["Confidence"] = 100
    write_csv(answers, private / "test.csv")
    write_csv(answers[["Patient_Week"]].assign(FVC=2000, Confidence=100), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Lungs with more bright scars decline faster, smokers' too; each visit measures with some error."""
    patients, slices = {"tiny": (250, 2), "small": (600, 3)}[size]
    rows = []
    for number in range(patients):
        patient = f"ID{number * 37 + 7:05d}{rng.integers(10**16, 10**17)}{rng.integers(10):d}"
        scars, age, male = rng.beta(2, 3), int(rng.integers(49, 89)), bool(rng.random() < 0.79)
        smoking = str(rng.choice(["Ex-smoker", "Never smoked", "Currently smokes"], p=[0.67, 0.28, 0.05]))
        normal = (4100 if male else 2900) - 18 * (age - 60)
        level = normal * rng.uniform(0.55, 1.0) * (1 - 0.25 * scars)
        slope = -11 * scars - 3 * (smoking != "Never smoked") + rng.normal(0, 1.5)
        start = int(rng.integers(-5, 12))
        weeks = start + np.cumsum([0, *rng.choice([2, 3, 4, 6, 8], int(rng.integers(6, 9)))])
        for week in weeks:
            fvc = round(max(level + slope * (week - start) + rng.normal(0, 70), 800))
            rows.append((patient, week, fvc, 100 * fvc / normal, age, "Male" if male else "Female", smoking))
        (raw / "train" / patient).mkdir(parents=True)
        for place in range(slices):
            lungs = np.maximum(*(ellipse((32, 32), (16, x), (11 - place, 6)) for x in (9, 23)))
            spots = rng.random((32, 32)) < 0.45 * scars
            scan = np.where(lungs > 0, 200 + 700 * spots, 1050) + rng.normal(0, 25, (32, 32))
            file = dicom_bytes(
                scan, number * slices + place, PatientID=patient, Modality="CT", InstanceNumber=place + 1
            )
            (raw / "train" / patient / f"{place + 1}.dcm").write_bytes(file)
    columns = ["Patient", "Weeks", "FVC", "Percent", "Age", "Sex", "SmokingStatus"]
    pd.DataFrame(rows, columns=columns).to_csv(raw / "train.csv", index=False)
