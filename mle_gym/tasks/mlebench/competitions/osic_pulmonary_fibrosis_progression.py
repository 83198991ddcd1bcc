"""OSIC Pulmonary Fibrosis Progression: how a patient's lung capacity declines, and how sure one is."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import numbers, require_columns, say
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv


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
