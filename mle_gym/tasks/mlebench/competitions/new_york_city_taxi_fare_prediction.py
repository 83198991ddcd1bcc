"""New York City Taxi Fare Prediction: the fare of a ride from where, when and for how many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.checks import numbers, require_columns
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.regression import rmse, sorted_alike, sorted_part

N_TEST = 9_914
CHUNK = 1_000_000
COUPONS = "GCP-Coupons-Instructions.rtf"


def part(submission: pd.DataFrame, answers: pd.DataFrame, rows: NDArray[np.bool_]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Cut answers and submission, rows lined up as in :func:`grade`."""
    return sorted_part(submission, answers, rows, "key")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Root mean squared error."""
    require_columns(submission, "fare_amount", "key")
    numbers(submission, "fare_amount")
    predicted = numbers(sorted_alike(submission, answers, "key"), "fare_amount")
    return rmse((answers["fare_amount"].to_numpy(), predicted))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 9,914 rides. The 55 million others are put in their new order a million at a time."""
    rides = read_csv(raw / "train.csv")
    train, test = split_rows(np.arange(len(rides)), test_size=N_TEST if len(rides) > N_TEST else 0.2)
    for start in range(0, len(train), CHUNK):
        part = rides.iloc[train[start : start + CHUNK]]
        write_csv(part, public / "labels.csv", header=start == 0, mode="a")
    answers = rides.iloc[test]
    write_csv(answers, private / "test.csv")
    write_csv(answers.drop(columns="fare_amount"), public / "test.csv")
    write_csv(answers[["key"]].assign(fare_amount=11.35), public / "sample_submission.csv")
    copy_files([(raw / COUPONS, public / COUPONS)])
