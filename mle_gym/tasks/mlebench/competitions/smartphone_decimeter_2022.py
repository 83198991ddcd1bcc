"""Google Smartphone Decimeter Challenge 2022: where a car drove, from a phone's satellite signals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import numbers, require_columns, require_rows, say
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv

COLUMNS = ("tripId", "UnixTimeMillis", "LatitudeDegrees", "LongitudeDegrees")
EARTH_RADIUS = 6_371_000.0
"""Metres."""


def _metres(here: NDArray[np.float64], there: NDArray[np.float64]) -> NDArray[np.float64]:
    """Great-circle distances, shape ``(rows,)``, between places, degrees, shape ``(2, rows)``."""
    (lat, lon), (other_lat, other_lon) = np.radians(here), np.radians(there)
    half = np.sin((other_lat - lat) / 2.0) ** 2 + np.cos(lat) * np.cos(other_lat) * np.sin((other_lon - lon) / 2.0) ** 2
    return np.asarray(EARTH_RADIUS * 2.0 * np.arctan2(np.sqrt(half), np.sqrt(1.0 - half)))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean over trips of the mean of the median and the 95th percentile of the distance; rows in file order."""
    require_columns(submission, *COLUMNS)
    require_rows(submission, len(answers))
    found = np.array([numbers(submission, column, allow_nan=True, allow_inf=True) for column in COLUMNS[2:]])
    truth = answers[list(COLUMNS[2:])].to_numpy(dtype=np.float64).T
    mine, theirs = submission["tripId"].to_numpy(dtype=object), answers["tripId"].to_numpy(dtype=object)
    scores = []
    for trip in dict.fromkeys(theirs.tolist()):
        here, there = mine == trip, theirs == trip
        if here.sum() != there.sum():
            raise InvalidSubmission(
                f"Column 'tripId': {say(trip)} stands in {here.sum():,} rows; expected it in {there.sum():,}."
            )
        with np.errstate(invalid="ignore"):
            metres = _metres(found[:, here], truth[:, there])
            scores.append(np.mean(np.quantile(metres, (0.5, 0.95))))
    return float(np.mean(scores))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out the drives of 10 % of the days, with all their files but the true positions."""
    drives = sorted(path for path in (raw / "train").iterdir() if path.is_dir())
    _, days = split_rows(sorted({drive.name[:10] for drive in drives}), test_size=0.1)
    truth = []
    for drive in drives:
        held_out = drive.name[:10] in days
        files = (path for path in drive.rglob("*") if path.is_file())
        top = public / ("test" if held_out else "train")
        copy_files(
            (path, top / path.relative_to(raw / "train"))
            for path in files
            if not (held_out and path.name == "ground_truth.csv")
        )
        for phone in sorted(drive.iterdir()) if held_out else ():
            trip = read_csv(phone / "ground_truth.csv").assign(tripId=f"{drive.name}-{phone.name}")
            truth.append(trip[list(COLUMNS)])
    answers = pd.concat(truth, ignore_index=True)
    write_csv(answers, private / "test.csv")
    place = {"LatitudeDegrees": 37.904611315634504, "LongitudeDegrees": -86.48107806249548}
    write_csv(answers.assign(**place), public / "sample_submission.csv")
    metadata = raw / "metadata"
    copy_files((path, public / path.relative_to(raw)) for path in metadata.rglob("*") if path.is_file())
