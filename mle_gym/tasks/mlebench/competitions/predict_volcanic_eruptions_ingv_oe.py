"""INGV - Volcanic Eruption Prediction: how long until a volcano erupts, from ten minutes of ten seismometers."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.regression import merged


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean absolute error, rounded to a whole number; a segment that stands twice counts twice."""
    from sklearn.metrics import mean_absolute_error

    pair, _ = merged(submission, answers, "segment_id", "time_to_eruption")
    error = float(mean_absolute_error(*pair))
    if math.isinf(error):
        raise InvalidSubmission("Column 'time_to_eruption': its numbers are too large to be added; expected times.")
    return float(round(error))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the segments; the order of the answers is that of the sample submission."""
    parts = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    for name, part in zip(("train", "test"), parts, strict=True):
        copy_files(
            (raw / "train" / f"{segment}.csv", public / name / f"{segment}.csv") for segment in part["segment_id"]
        )
    train, test = parts
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.assign(time_to_eruption=0), public / "sample_submission.csv")
