"""OSIC Pulmonary Fibrosis Progression: how a patient's lung capacity declines, and how sure one is."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import numbers, require_columns, say


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
