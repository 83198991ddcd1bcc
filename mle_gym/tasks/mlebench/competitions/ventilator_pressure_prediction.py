"""Google Brain - Ventilator Pressure Prediction: airway pressure during a breath from the valves' positions."""

from __future__ import annotations

import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean absolute error while breathing in (``u_out`` is 0); what is said about breathing out is not looked at."""
    from sklearn.metrics import mean_absolute_error

    require_columns(submission, "id", "pressure")
    rows = aligned(submission, answers, "id")
    inhaling = answers["u_out"].to_numpy() == 0
    used = submission["id"].isin(answers.loc[inhaling, "id"])
    numbers(submission.assign(pressure=submission["pressure"].astype(object).where(used, 0.0)), "pressure")
    return float(mean_absolute_error(answers.loc[inhaling, "pressure"], numbers(rows[inhaling], "pressure")))
