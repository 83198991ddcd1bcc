"""Google Brain - Ventilator Pressure Prediction: airway pressure during a breath from the valves' positions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns
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
