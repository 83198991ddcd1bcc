"""Google Smartphone Decimeter Challenge 2022: where a car drove, from a phone's satellite signals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import numbers, require_columns, require_rows, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv

COLUMNS = ("tripId", "UnixTimeMillis", "LatitudeDegrees", "LongitudeDegrees")
EARTH_RADIUS = 6_371_000.0
"""Metres."""
ECCENTRICITY = 6.69437999014e-3
"""First eccentricity squared of WGS 84."""


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
    there, trips = pd.factorize(answers["tripId"].to_numpy(dtype=object))
    here = pd.Index(trips, dtype=object).get_indexer(pd.Index(submission["tripId"], dtype=object))
    rows = np.bincount(there, minlength=len(trips))
    mine = np.bincount(here[here >= 0], minlength=len(trips))
    if (mine != rows).any():
        at = int(np.flatnonzero(mine != rows)[0])
        raise InvalidSubmission(
            f"Column 'tripId': {say(trips[at])} stands in {mine[at]:,} rows; expected it in {rows[at]:,}."
        )
    # Trip by trip, and within a trip by the place in the file: its times are not compared.
    with np.errstate(invalid="ignore"):
        metres = _metres(found[:, np.argsort(here, kind="stable")], truth[:, np.argsort(there, kind="stable")])
        parts = np.split(metres, np.cumsum(rows)[:-1])
        return float(np.mean([np.mean(np.quantile(part, (0.5, 0.95))) for part in parts]))


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


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Drives past satellites at rest; the coarse position in the log is off by metres that a little smoothing halves.

    Unlike Kaggle's, the NMEA log of the reference receiver tells the time only, not the place.
    """
    days, seconds = {"tiny": (36, 10), "small": (70, 20)}[size]
    (raw / "metadata").mkdir()
    (raw / "metadata" / "constellation_type_mapping.csv").write_text("constellationType,constellationName\n1,GPS\n")
    for day in range(days):
        date = pd.Timestamp("2020-05-15") + pd.Timedelta(days=3 * day)
        for drive in range(1, 1 + int(rng.integers(1, 3))):
            start = int(date.timestamp() * 1000) + 72_000_000 + drive * 3_600_000
            heading = np.cumsum(rng.normal(0, 0.1, seconds)) + rng.uniform(0, 2 * np.pi)
            speed = rng.uniform(3, 25)
            place = np.array([37.40, -122.05]) + rng.normal(0, 0.05, 2)
            steps = speed * np.column_stack([np.cos(heading), np.sin(heading) / np.cos(np.radians(place[0]))])
            truth = place + np.cumsum(steps, axis=0) / 111_195.0
            for phone in rng.choice(["GooglePixel4", "GooglePixel5", "XiaomiMi8"], rng.integers(1, 3), replace=False):
                folder = raw / "train" / f"{date:%Y-%m-%d}-US-MTV-{drive}" / str(phone)
                (folder / "supplemental").mkdir(parents=True)
                when = start + np.arange(seconds) * 1000 + 441
                table = pd.DataFrame({"MessageType": "Fix", "Provider": "GT"}, index=range(seconds))
                table["LatitudeDegrees"], table["LongitudeDegrees"] = truth.T.round(9)
                table["AltitudeMeters"], table["SpeedMps"], table["AccuracyMeters"] = 30.0, round(speed, 3), 0.1
                table["BearingDegrees"] = (np.degrees(heading) % 360).round(1)
                table["UnixTimeMillis"] = when
                table.to_csv(folder / "ground_truth.csv", index=False)
                _signals(rng, truth, when).to_csv(folder / "device_gnss.csv", index=False)
                times = pd.to_datetime(when, unit="ms").strftime("$GPZDA,%H%M%S.00,%d,%m,%Y,00,00")
                (folder / "supplemental" / "span_log.nmea").write_text("\n".join(times) + "\n", encoding="ascii")


def _signals(rng: np.random.Generator, truth: NDArray[np.float64], when: NDArray[np.int64]) -> pd.DataFrame:
    """Return five satellites' signals for each moment, WGS 84 coordinates from degrees, shape ``(moments, 2)``."""
    lat, lon = np.radians(truth).T
    curve = 6_378_137.0 / np.sqrt(1 - ECCENTRICITY * np.sin(lat) ** 2)
    here = np.column_stack(
        [
            (curve + 30) * np.cos(lat) * np.cos(lon),
            (curve + 30) * np.cos(lat) * np.sin(lon),
            (curve * (1 - ECCENTRICITY) + 30) * np.sin(lat),
        ]
    )
    coarse = here + rng.normal(0, 1.5, 3) + rng.normal(0, 3.0, here.shape)
    up = here[0] / np.linalg.norm(here[0])
    sky = up + rng.normal(0, 0.6, (5, 3))
    satellites = 26_560_000.0 * sky / np.linalg.norm(sky, axis=1, keepdims=True)
    clock = rng.uniform(-3e5, 3e5)
    at, one = np.divmod(np.arange(len(when) * 5), 5)
    table = pd.DataFrame({"MessageType": "Raw", "utcTimeMillis": when[at], "Svid": one + 1, "ConstellationType": 1})
    distance = np.linalg.norm(satellites[one] - here[at], axis=1)
    table["Cn0DbHz"] = rng.uniform(20, 45, len(at)).round(1)
    table["RawPseudorangeMeters"] = (distance + clock + rng.normal(0, 4, len(at))).round(3)
    table["RawPseudorangeUncertaintyMeters"] = 4.0
    table["SignalType"] = "GPS_L1"
    for axis, name in enumerate("XYZ"):
        table[f"SvPosition{name}EcefMeters"] = satellites[one, axis].round(3)
    for axis, name in enumerate("XYZ"):
        table[f"WlsPosition{name}EcefMeters"] = coarse[at, axis].round(3)
    return table
