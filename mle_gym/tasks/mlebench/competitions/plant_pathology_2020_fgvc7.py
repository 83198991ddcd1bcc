"""Plant Pathology 2020: is an apple leaf healthy, or has it rust, scab or several diseases?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, require_rows
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import ellipse, image_bytes, split_labels
from mle_gym.tasks.mlebench.probabilities import columns_auc, require_only, scores

STATES = ("healthy", "multiple_diseases", "rust", "scab")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean of the four ROC AUCs."""
    require_rows(submission, len(answers))
    require_only(submission, ["image_id", *STATES])
    scores(submission, STATES)
    values = scores(aligned(submission, answers, "image_id"), STATES)
    return columns_auc(answers[list(STATES)].to_numpy(), values, STATES)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled leaves and number both parts anew."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    for part, kind in ((train, "Train"), (test, "Test")):
        old = part["image_id"].tolist()
        part["image_id"] = [f"{kind}_{number}" for number in range(len(part))]
        copy_files(
            (raw / "images" / f"{name}.jpg", public / "images" / f"{new}.jpg")
            for name, new in zip(old, part["image_id"], strict=True)
        )
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test[["image_id"]], public / "test.csv")
    write_csv(test.assign(**dict.fromkeys(STATES, 0.25)), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Green leaves; rust is small orange spots, scab large dark blotches, and any leaf can have a few specks."""
    rows = {"tiny": 300, "small": 1200}[size]
    labels = split_labels(rng, rows, (0.28, 0.1, 0.32, 0.3))
    (raw / "images").mkdir()
    for number, label in enumerate(labels):
        _leaf(raw / "images" / f"Train_{number}.jpg", rng, rust=label in (1, 2), scab=label in (1, 3))
    for number in range(6):
        _leaf(raw / "images" / f"Test_{number}.jpg", rng, rust=number % 2 == 0, scab=number % 3 == 0)
    table = pd.DataFrame(np.eye(len(STATES), dtype=np.int64)[labels], columns=list(STATES))
    table.insert(0, "image_id", [f"Train_{number}" for number in range(rows)])
    write_csv(table, raw / "train.csv")


def _leaf(path: Path, rng: np.random.Generator, *, rust: bool, scab: bool) -> None:
    shape = (44, 64)
    pixels = rng.uniform((60, 90, 50), (140, 150, 120)) + rng.normal(0, 12, (*shape, 3))
    blade = ellipse(shape, (rng.uniform(18, 26), rng.uniform(26, 38)), (16, 26), rng.uniform(-0.4, 0.4)) > 0
    pixels[blade] += rng.uniform((-60, 10, -60), (-20, 60, -20))
    specks = ((rng.poisson(3 * rust + 0.5), 1.6, (90, 0, -40)), (rng.poisson(1.7 * scab + 0.25), 4.0, (-45, -70, -30)))
    for many, radius, colour in specks:
        for _ in range(many):
            spot = ellipse(shape, (rng.uniform(8, 36), rng.uniform(10, 54)), (radius, radius * rng.uniform(0.6, 1.2)))
            pixels[blade & (spot > 0)] += np.array(colour) * rng.uniform(0.5, 1.2)
    path.write_bytes(image_bytes(pixels, "JPEG", quality=85))
