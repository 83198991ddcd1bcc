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
    answers = pd.DataFrame({"id": [echo["id"] for echo in test], "is_iceberg": [int(echo["is_iceberg"]) for echo in test]})
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(is_iceberg=0.5), private / "sample_submission.csv")
    _pack(private / "sample_submission.csv", public)
    for name, rows in (("train", train), ("test", [{field: echo[field] for field in shown} for echo in test])):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"{name}.json")
            path.write_text(json.dumps(rows))
            _pack(path, public)


def _fields(path: Path) -> list[str]:
    """Fields of the first echo in a file of over a gigabyte; Kaggle's test echoes have no labels, so no more is used."""
    text = ""
    with path.open() as file:
        while "}" not in text and (chunk := file.read(1 << 16)):
            text += chunk
    first: dict[str, Any]
    first, _ = json.JSONDecoder().raw_decode(text, text.find("{"))
    return list(first)


def _pack(path: Path, folder: Path, inside: str = "") -> None:
    """Write a 7z archive of one file."""
    import py7zr

    with py7zr.SevenZipFile(folder / f"{path.name}.7z", "w") as archive:
        archive.write(path, inside + path.name)
