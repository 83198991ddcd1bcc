"""New York City Taxi Fare Prediction: the fare of a ride from where, when and for how many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.checks import numbers, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, split_rows, write_csv
from mle_gym.tasks.mlebench.frames import EXACT
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
    # In chunks it takes 9 GB for Kaggle's file, at once 14.
    rides = pd.concat(pd.read_csv(raw / "train.csv", chunksize=CHUNK, **EXACT), ignore_index=True)
    train, test = split_rows(np.arange(len(rides)), test_size=N_TEST if len(rides) > N_TEST else 0.2)
    for start in range(0, len(train), CHUNK):
        part = rides.iloc[train[start : start + CHUNK]]
        write_csv(part, public / "labels.csv", header=start == 0, mode="a")
    answers = rides.iloc[test]
    write_csv(answers, private / "test.csv")
    write_csv(answers.drop(columns="fare_amount"), public / "test.csv")
    write_csv(answers[["key"]].assign(fare_amount=11.35), public / "sample_submission.csv")
    copy_files([(raw / COUPONS, public / COUPONS)])


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Rides around Manhattan: a start price, a price per mile, more at night and since 2013; some bad coordinates."""
    rows = {"tiny": 500, "small": 5000}[size]
    when = pd.Timestamp("2009-01-01") + pd.to_timedelta(rng.integers(0, 6 * 365 * 86_400, rows), unit="s")
    start = rng.normal((-73.98, 40.75), (0.025, 0.025), (rows, 2))
    end = start + rng.normal(0, (0.022, 0.02), (rows, 2))
    airport = rng.random(rows) < 0.05
    end[airport] = rng.normal((-73.781, 40.645), 0.003, (airport.sum(), 2))
    miles = np.hypot((end[:, 0] - start[:, 0]) * 52.4, (end[:, 1] - start[:, 1]) * 69.0)
    fare = 2.5 + 1.3 * (when.hour >= 20) + miles * (1.8 + 0.5 * (when.year >= 2013)) * rng.lognormal(0.2, 0.15, rows)
    fare = np.where(airport & (rng.random(rows) < 0.7), 45.0, np.maximum(fare, 2.5))
    start[rng.random(rows) < 0.02] = 0.0
    time = when.strftime("%Y-%m-%d %H:%M:%S")
    nanoseconds = rng.integers(1, 200, rows)
    rides = pd.DataFrame({"key": [f"{t}.{n:07d}" for t, n in zip(time, nanoseconds, strict=True)]})
    rides["fare_amount"] = np.round(fare * 10) / 10
    rides["pickup_datetime"] = time + " UTC"
    for name, place in (("pickup", start), ("dropoff", end)):
        rides[f"{name}_longitude"], rides[f"{name}_latitude"] = place.round(6).T
    rides["passenger_count"] = rng.choice([1, 1, 1, 1, 2, 2, 3, 4, 5, 6], rows)
    rides.to_csv(raw / "train.csv", index=False)
    (raw / COUPONS).write_text("{\\rtf1\\ansi There are no coupons for invented data.}\n", encoding="ascii")
