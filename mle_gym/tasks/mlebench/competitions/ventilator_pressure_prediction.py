"""Google Brain - Ventilator Pressure Prediction: airway pressure during a breath from the valves' positions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean absolute error while breathing in (``u_out`` is 0); what is said about breathing out is not looked at."""
    from sklearn.metrics import mean_absolute_error

    require_columns(submission, "id", "pressure")
    rows = aligned(submission, answers, "id")
    inhaling = answers["u_out"].to_numpy() == 0
    used = submission["id"].isin(answers.loc[inhaling, "id"])
    numbers(submission.assign(pressure=submission["pressure"].astype(object).where(used, 0.0)), "pressure")
    return float(mean_absolute_error(answers.loc[inhaling, "pressure"], numbers(rows[inhaling], "pressure")))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the breaths and number the rows of both parts anew."""
    rows = read_csv(raw / "train.csv")
    breaths = list(rows.groupby("breath_id").indices.values())
    train, test = (
        rows.iloc[np.concatenate(part)].assign(id=np.arange(1, sum(map(len, part)) + 1))
        for part in split_rows(breaths, test_size=0.1)
    )
    for part, path in (
        (train, public / "train.csv"),
        (test, private / "test.csv"),
        (test.drop(columns="pressure"), public / "test.csv"),
        (test[["id"]].assign(pressure=0), public / "sample_submission.csv"),
    ):
        write_csv(part, path, float_format="%.10g")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """A lung as a resistance R and a compliance C in series, filled for a second and then left to empty itself."""
    breaths = {"tiny": 240, "small": 700}[size]
    steps = 80
    resistance, compliance = rng.choice([5, 20, 50], breaths), rng.choice([10, 20, 50], breaths)
    time = np.cumsum(np.concatenate([np.zeros((breaths, 1)), rng.normal(0.0335, 0.0004, (breaths, steps - 1))], 1), 1)
    out = time > rng.uniform(0.95, 1.05, (breaths, 1))
    peak, length = rng.uniform(8, 60, (breaths, 1)), rng.uniform(0.15, 0.9, (breaths, 1))
    valve = np.where(out, 4.9, peak * np.exp(-((time / length) ** 2)) + rng.uniform(0, 4, (breaths, 1)))
    valve = np.clip(valve + np.where(out, 0.0, rng.normal(0, 0.3, time.shape)), 0, 100)
    volume, pressure = np.zeros(breaths), np.empty_like(valve)
    for step in range(steps):
        flow = np.where(out[:, step], -volume * 3.0 / np.sqrt(resistance), valve[:, step])
        volume = np.maximum(volume + flow * 0.0335, 0.0)
        pressure[:, step] = 5.5 + 25.0 * volume / compliance + 0.012 * resistance * np.maximum(flow, 0.0)
    pressure += rng.normal(0, 0.15, pressure.shape)
    pressure = np.clip(np.round(pressure / 0.0703) * 0.0703, -1.895744294564641, 64.82099173863948)
    number = np.sort(rng.choice(np.arange(1, 125_750), breaths, replace=False))
    columns = {
        "breath_id": np.repeat(number, steps),
        "R": np.repeat(resistance, steps),
        "C": np.repeat(compliance, steps),
        "time_step": time.ravel(),
        "u_in": valve.ravel(),
        "u_out": out.ravel().astype(int),
        "pressure": pressure.ravel(),
    }
    table = pd.DataFrame({"id": np.arange(1, breaths * steps + 1), **columns})
    table.to_csv(raw / "train.csv", index=False, float_format="%.10g")
