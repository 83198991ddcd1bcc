"""IceCube - Neutrinos in Deep Ice: the direction a neutrino came from, from flashes seen by sensors in the ice."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import require_columns
from mle_gym.tasks.mlebench.regression import matched

ANGLES = ("azimuth", "zenith")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean angle, in radians, between the two directions."""
    columns = [column for column in submission.columns if column in ("event_id", *ANGLES)]
    require_columns(submission, "event_id", *ANGLES)
    require_columns(submission, *columns, exact=True)
    (az, az_found), (ze, ze_found) = (matched(submission, answers, "event_id", angle) for angle in ANGLES)
    cosine = np.sin(ze) * np.sin(ze_found) * (
        np.cos(az) * np.cos(az_found) + np.sin(az) * np.sin(az_found)
    ) + np.cos(ze) * np.cos(ze_found)
    return float(np.mean(np.arccos(np.clip(cosine, -1.0, 1.0))))
