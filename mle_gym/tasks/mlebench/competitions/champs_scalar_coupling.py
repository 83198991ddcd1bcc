"""Predicting Molecular Properties: the magnetic coupling of two atoms of a molecule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.regression import merged

TABLES = (
    *("structures", "dipole_moments", "magnetic_shielding_tensors", "mulliken_charges", "potential_energy"),
    "scalar_coupling_contributions",
)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean over types of coupling of the logarithm of the mean absolute error; -inf if a type is without error."""
    from sklearn.metrics import mean_absolute_error

    (truth, predicted), rows = merged(submission, answers, "id", "scalar_coupling_constant")
    errors = [mean_absolute_error(truth[at], predicted[at]) for at in rows.groupby("type").indices.values()]
    with np.errstate(divide="ignore"):
        return float(np.mean(np.log(errors)))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the molecules; every table but that of test pairs has training molecules only."""
    pairs = read_csv(raw / "train.csv")
    molecules = list(pairs.groupby("molecule_name").indices.items())
    train, test = (
        pairs.iloc[np.concatenate([rows for _, rows in part])] for part in split_rows(molecules, test_size=0.1)
    )
    known = train["molecule_name"].unique()
    for name in TABLES:
        table = read_csv(raw / f"{name}.csv")
        write_csv(table[table["molecule_name"].isin(known)], public / f"{name}.csv")
    copy_files((raw / "structures" / f"{name}.xyz", public / "structures" / f"{name}.xyz") for name in known)
    write_csv(train, public / "train.csv")
    write_csv(test, private / "answers.csv")
    write_csv(test.drop(columns="scalar_coupling_constant"), public / "test.csv")
    write_csv(test[["id"]].assign(scalar_coupling_constant=0), public / "sample_submission.csv")
