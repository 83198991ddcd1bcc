"""INGV - Volcanic Eruption Prediction: how long until a volcano erupts, from ten minutes of ten seismometers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.competition import Size
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


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Tremor of ten sensors, 200 samples instead of 60,001: it grows and slows as the eruption comes near."""
    segments, samples = {"tiny": 250, "small": 600}[size], 200
    names = rng.choice(2_140_000_000, segments, replace=False) + 1_000_000
    remaining = rng.integers(6_000, 49_000_000, segments)
    gain = rng.lognormal(0, 0.6, 10)
    (raw / "train").mkdir()
    time = np.arange(samples)[:, None]
    for name, left in zip(names, remaining / 49e6, strict=True):
        strength = 500 * np.exp(-1.5 * left + rng.normal(0, 0.15))
        rhythm = np.sin(2 * np.pi * (time * (0.02 + 0.08 * left) + rng.random(10)))
        tremor = gain * strength * (rhythm * rng.lognormal(0, 0.3, 10) + rng.normal(0, 0.7, (samples, 10)))
        table = pd.DataFrame(tremor.round(), columns=[f"sensor_{number}" for number in range(1, 11)])
        table.loc[:, rng.random(10) < 0.04] = np.nan
        table.to_csv(raw / "train" / f"{name}.csv", index=False)
    pd.DataFrame({"segment_id": names, "time_to_eruption": remaining}).to_csv(raw / "train.csv", index=False)
