"""Vesuvius Challenge - Ink Detection: where on a papyrus fragment is ink, seen in an X-ray volume?"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns, require_rows, say
from mle_gym.tasks.mlebench.files import read_csv, write_csv
from mle_gym.tasks.mlebench.rle import read_runs


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """F0.5 of the pixels; rows are matched by their order."""
    require_rows(submission, len(answers))
    require_columns(submission, "Id", "Predicted")
    if len(submission.columns) > 2:
        require_columns(submission, "Id", "Predicted", exact=True)
    for row, (found, expected) in enumerate(zip(submission["Id"], answers["Id"], strict=True), start=1):
        if found != expected:
            raise InvalidSubmission(f"Column 'Id', row {row}: {say(found)}; expected {say(expected)}.")
    pixels = (answers["width"] * answers["height"]).tolist()
    scores = []
    for ink, truth in zip(
        read_runs(submission["Predicted"], "Predicted", pixels),
        read_runs(answers["Predicted"], "Predicted", pixels),
        strict=True,
    ):
        total = 0.25 * truth.area + ink.area
        scores.append(1.25 * ink.overlap(truth) / total if total else 0.0)
    return float(np.mean(scores))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out the third fragment, without its labels and its infrared photo."""
    from PIL import Image

    fragment = raw / "train" / "3"
    labels = read_csv(fragment / "inklabels_rle.csv")
    with Image.open(fragment / "ir.png") as photo:
        labels["width"], labels["height"] = photo.size
    labels["Id"] = "a"
    for name in ("1", "2"):
        shutil.copytree(raw / "train" / name, public / "train" / name)
    secret = shutil.ignore_patterns("inklabels.png", "inklabels_rle.csv", "ir.png")
    shutil.copytree(fragment, public / "test" / "a", ignore=secret)
    write_csv(labels, private / "inklabels_rle.csv")
    write_csv(labels.drop(columns=["width", "height"]), private / "gold_submission.csv")
    sample = pd.DataFrame({"Id": ["a"], "Predicted": ["1 1 5 1"]})
    write_csv(sample, public / "sample_submission.csv")
