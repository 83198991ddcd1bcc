"""Statoil/C-CORE Iceberg Classifier Challenge: is a radar echo at sea a ship or an iceberg?"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import ellipse, hex_id, split_labels
from mle_gym.tasks.mlebench.probabilities import binary_log_loss

INSIDE = "data/processed"
"""Where Kaggle's archives hold their file."""


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Log loss of the probability that it is an iceberg."""
    return binary_log_loss(submission, answers, "id", "is_iceberg")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 20 % of the labelled echoes; the public files are 7z archives."""
    import py7zr

    for name in ("train", "test"):
        with py7zr.SevenZipFile(raw / f"{name}.json.7z") as archive:
            archive.extractall(raw)
    echoes: list[dict[str, Any]] = json.loads((raw / INSIDE / "train.json").read_text())
    shown = _fields(raw / INSIDE / "test.json")
    train, test = split_rows(echoes, test_size=0.2)
    answers = pd.DataFrame(
        {"id": [echo["id"] for echo in test], "is_iceberg": [int(echo["is_iceberg"]) for echo in test]}
    )
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(is_iceberg=0.5), private / "sample_submission.csv")
    _pack(private / "sample_submission.csv", public)
    for name, rows in (("train", train), ("test", [{field: echo[field] for field in shown} for echo in test])):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"{name}.json")
            path.write_text(json.dumps(rows))
            _pack(path, public)


def _fields(path: Path) -> list[str]:
    """Fields of the first echo: Kaggle's test file is large and has no labels, so no more of it is used."""
    text = ""
    with path.open() as file:
        while "}" not in text and (chunk := file.read(1 << 16)):
            text += chunk
    first: dict[str, Any]
    first, _ = json.JSONDecoder().raw_decode(text, text.find("{"))
    return list(first)


def _pack(path: Path, folder: Path) -> None:
    """Write a 7z archive of one file."""
    import py7zr

    # The usual preset takes minutes for these numbers and saves little.
    quick = [{"id": py7zr.FILTER_LZMA2, "preset": 1}]
    with py7zr.SevenZipFile(folder / f"{path.name}.7z", "w", filters=quick) as archive:
        archive.write(path, path.name)


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Bright spots on a noisy sea, steeper views darker; icebergs are round and as bright in both bands, ships long."""
    import py7zr

    rows = {"tiny": 125, "small": 280}[size]
    icebergs = split_labels(rng, rows, (0.53, 0.47), test_size=0.2)
    (raw / INSIDE).mkdir(parents=True)
    for name, labels in (("train", icebergs), ("test", rng.integers(0, 2, 3))):
        path = raw / INSIDE / f"{name}.json"
        path.write_text(json.dumps([_echo(rng, int(label), labelled=name == "train") for label in labels]))
        # Quick rather than small: the archive lives for a moment only.
        with py7zr.SevenZipFile(raw / f"{name}.json.7z", "w", filters=[{"id": py7zr.FILTER_COPY}]) as archive:
            archive.write(path, f"{INSIDE}/{path.name}")


def _echo(rng: np.random.Generator, iceberg: int, *, labelled: bool) -> dict[str, Any]:
    angle = rng.uniform(30.0, 46.0)
    long = rng.uniform(4, 10)
    radii = (long, long * rng.uniform(0.55, 1.0)) if iceberg else (long, long * rng.uniform(0.25, 0.7))
    inside = ellipse((75, 75), (rng.uniform(30, 45), rng.uniform(30, 45)), radii, rng.uniform(0, np.pi)).clip(0)
    bright = rng.uniform(8, 22)
    bands = {}
    for band, share in (("band_1", 1.0), ("band_2", rng.normal(0.9 if iceberg else 0.6, 0.15))):
        sea = rng.normal(-20 - 0.25 * (angle - 38) - 5 * (band == "band_2"), 2.5, (75, 75))
        bands[band] = (sea + bright * share * np.sqrt(inside)).round(1).ravel().tolist()
    known: dict[str, Any] = {"inc_angle": "na" if labelled and rng.random() < 0.08 else round(angle, 4)}
    return {"id": hex_id(rng, 8), **bands, **known, **({"is_iceberg": iceberg} if labelled else {})}
