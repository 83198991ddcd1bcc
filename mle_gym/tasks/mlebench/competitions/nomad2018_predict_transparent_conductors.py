"""Nomad2018 Predicting Transparent Conductors: formation and band gap energy of a crystal."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import numbers, require_columns, require_rows

TARGETS = ("formation_energy_ev_natom", "bandgap_energy_ev")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean over both energies of the root mean squared error of log(1 + energy); rows meet by position."""
    from sklearn.metrics import root_mean_squared_log_error

    require_columns(submission, *TARGETS)
    require_rows(submission, len(answers))
    # Energies between -1 and 0 have a logarithm too, but scikit-learn refused them when MLE-bench was released.
    predicted = [numbers(submission, target, low=0.0) for target in TARGETS]
    return float(
        np.mean([root_mean_squared_log_error(answers[t], p) for t, p in zip(TARGETS, predicted, strict=True)])
    )
