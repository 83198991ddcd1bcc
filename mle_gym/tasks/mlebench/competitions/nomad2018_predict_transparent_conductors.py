"""Nomad2018 Predicting Transparent Conductors: formation and band gap energy of a crystal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import numbers, require_columns, require_rows
from mle_gym.tasks.mlebench.files import copy_files, extract, read_csv, split_rows, write_csv

TARGETS = ("formation_energy_ev_natom", "bandgap_energy_ev")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean over both energies of the root mean squared error of log(1 + energy); rows meet by position."""
    from sklearn.metrics import root_mean_squared_log_error

    require_columns(submission, *TARGETS)
    require_rows(submission, len(answers))
    # Energies between -1 and 0 have a logarithm too, but scikit-learn refused them when MLE-bench was released.
    predicted = [numbers(submission, target, low=0.0) for target in TARGETS]
    return float(np.mean([root_mean_squared_log_error(answers[t], p) for t, p in zip(TARGETS, predicted, strict=True)]))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the crystals and number both parts anew."""
    table = read_csv(extract(raw / "train.csv.zip", raw) / "train.csv")
    crystals = extract(raw / "train.zip", raw) / "train"
    parts = dict(zip(("train", "test"), split_rows(table, test_size=0.1), strict=True))
    for name, part in parts.items():
        numbered = part.assign(id=np.arange(1, len(part) + 1))
        copy_files(
            (crystals / str(old) / "geometry.xyz", public / name / str(new) / "geometry.xyz")
            for old, new in zip(part["id"], numbered["id"], strict=True)
        )
        parts[name] = numbered
    write_csv(parts["train"], public / "train.csv")
    write_csv(parts["test"].drop(columns=list(TARGETS)), public / "test.csv")
    write_csv(parts["test"], private / "test.csv")
    means = dict(zip(TARGETS, (0.1779, 1.8892), strict=True))
    write_csv(parts["test"][["id"]].assign(**means), public / "sample_submission.csv")
