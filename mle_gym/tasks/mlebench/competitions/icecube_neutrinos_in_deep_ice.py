"""IceCube - Neutrinos in Deep Ice: the direction a neutrino came from, from flashes seen by sensors in the ice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import require_columns
from mle_gym.tasks.mlebench.files import copy_files, split_rows, write_csv
from mle_gym.tasks.mlebench.regression import matched

ANGLES = ("azimuth", "zenith")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean angle, in radians, between the two directions."""
    columns = [column for column in submission.columns if column in ("event_id", *ANGLES)]
    require_columns(submission, "event_id", *ANGLES)
    require_columns(submission, *columns, exact=True)
    (az, az_found), (ze, ze_found) = (matched(submission, answers, "event_id", angle) for angle in ANGLES)
    cosine = np.sin(ze) * np.sin(ze_found) * (np.cos(az) * np.cos(az_found) + np.sin(az) * np.sin(az_found)) + np.cos(
        ze
    ) * np.cos(ze_found)
    return float(np.mean(np.arccos(np.clip(cosine, -1.0, 1.0))))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the batches. The table of 131 million events is read in two parts."""
    import fastparquet

    meta = raw / "train_meta.parquet"
    batches = pd.read_parquet(meta, columns=["batch_id"])["batch_id"].unique()
    for name, ids in zip(("train", "test"), split_rows(batches, test_size=0.1), strict=True):
        copy_files(
            (raw / "train" / f"batch_{batch}.parquet", public / name / f"batch_{batch}.parquet") for batch in ids
        )
        events = pd.read_parquet(meta, filters=[("batch_id", "in", ids.tolist())])
        if name == "test":
            answers = events[["event_id", *ANGLES]]
            write_csv(answers, private / "test.csv")
            write_csv(answers.assign(azimuth=1, zenith=1), public / "sample_submission.csv")
            events = events.drop(columns=list(ANGLES))
        fastparquet.write(str(public / f"{name}_meta.parquet"), events, compression="SNAPPY", write_index=False)
    copy_files([(raw / "sensor_geometry.csv", public / "sensor_geometry.csv")])
