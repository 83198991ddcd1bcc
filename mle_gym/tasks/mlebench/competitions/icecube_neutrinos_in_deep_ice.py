"""IceCube - Neutrinos in Deep Ice: the direction a neutrino came from, from flashes seen by sensors in the ice."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.checks import require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, split_rows, write_csv
from mle_gym.tasks.mlebench.frames import read_answers as read_table
from mle_gym.tasks.mlebench.regression import matched

ANGLES = ("azimuth", "zenith")
PULSES = ("sensor_id", "time", "charge", "auxiliary")


def read_answers(path: Path) -> pd.DataFrame:
    """Read the events and sort them into 10,007 buckets; to cut buckets instead of 13 million events saves minutes."""
    answers = read_table(path)
    return answers.assign(bucket=answers["event_id"] % 10_007)


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it reads an option of pandas that warns of its end
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


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """A muon crosses a grid of sensors at the speed of light; those near its way see it first, noise hits any."""
    batches, events = {"tiny": (20, 20), "small": (40, 80)}[size]
    (raw / "train").mkdir()
    strings = np.stack(np.meshgrid(np.arange(-5, 5) * 110.0, np.arange(-4, 5) * 110.0), -1).reshape(-1, 2)[:86]
    depths = np.linspace(500, -500, 60)
    sensors = np.column_stack([np.repeat(strings, 60, axis=0), np.tile(depths, 86)]) + rng.normal(0, 2, (5160, 3))
    geometry = pd.DataFrame(sensors.round(2), columns=["x", "y", "z"])
    geometry.rename_axis("sensor_id").reset_index().to_csv(raw / "sensor_geometry.csv", index=False)
    numbers = np.sort(rng.choice(2_000_000_000, batches * events, replace=False))
    tables = []
    for batch in range(1, batches + 1):
        ids = numbers[(batch - 1) * events : batch * events]
        azimuth, zenith = rng.uniform(0, 2 * np.pi, events), np.arccos(rng.uniform(-1, 1, events))
        found = [_pulses(rng, sensors, *angles) for angles in zip(azimuth, zenith, strict=True)]
        counts = np.array([len(columns[0]) for columns in found])
        pulses = dict(zip(PULSES, map(np.concatenate, zip(*found, strict=True)), strict=True))
        index = pd.Index(np.repeat(ids, counts), name="event_id")
        pd.DataFrame(pulses, index=index).to_parquet(raw / "train" / f"batch_{batch}.parquet")
        meta = pd.DataFrame({"batch_id": batch, "event_id": ids, "first_pulse_index": np.cumsum(counts) - counts})
        tables.append(meta.assign(last_pulse_index=np.cumsum(counts) - 1, azimuth=azimuth, zenith=zenith))
    pd.concat(tables, ignore_index=True).to_parquet(raw / "train_meta.parquet")


def _pulses(
    rng: np.random.Generator, sensors: NDArray[np.float64], azimuth: float, zenith: float
) -> tuple[NDArray[Any], ...]:
    """Return the columns :data:`PULSES` of a particle that comes from a direction; sensors in metres, time in ns."""
    origin = np.array([np.cos(azimuth) * np.sin(zenith), np.sin(azimuth) * np.sin(zenith), np.cos(zenith)])
    offset = sensors - rng.uniform(-150, 150, 3)
    along = -offset @ origin
    aside = np.linalg.norm(offset + along[:, None] * origin, axis=1)
    seen = rng.permutation(np.flatnonzero(rng.random(len(sensors)) < np.exp(-aside / 18)))[:40]
    noise = rng.choice(len(sensors), rng.integers(6, 20))
    arrival = (along + 0.9 * aside)[seen] / 0.3 + rng.exponential(120, len(seen))
    time = np.concatenate([arrival, rng.uniform(-4e3, 4e3, len(noise))])
    order = np.argsort(time, kind="stable")
    sensor = np.concatenate([seen, noise]).astype(np.int16)
    unsure = np.concatenate([rng.random(len(seen)) < 0.1, rng.random(len(noise)) < 0.7])
    charge = rng.lognormal(0, 0.4, len(time)).round(3)
    return sensor[order], (time[order] + 10_000).round().astype(np.int64), charge, unsure[order]
