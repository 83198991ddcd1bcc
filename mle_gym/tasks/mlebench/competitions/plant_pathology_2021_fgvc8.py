"""Plant Pathology 2021: which diseases does an apple leaf have?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import ellipse, hex_id, image_bytes
from mle_gym.tasks.mlebench.multilabel import micro_f1

_SHARES = {
    "scab": 26,
    "healthy": 25,
    "frog_eye_leaf_spot": 17,
    "rust": 10,
    "complex": 9,
    "powdery_mildew": 6,
    "scab frog_eye_leaf_spot": 4,
    "scab frog_eye_leaf_spot complex": 1,
    "frog_eye_leaf_spot complex": 1,
    "rust frog_eye_leaf_spot": 1,
}
_SPOTS = {
    "scab": (7, 4.0, (70, 75, 40)),
    "frog_eye_leaf_spot": (6, 2.6, (120, 70, 45)),
    "rust": (9, 1.7, (215, 130, 30)),
    "powdery_mildew": (4, 5.0, (175, 190, 170)),
    "complex": (5, 4.5, (100, 85, 35)),
}
"""Of each disease: most spots on a leaf, their radius in pixels, their colour."""


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Micro F1 of the labels."""
    return micro_f1(submission, answers, "image", "labels")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 20 % of the labelled leaves."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.2)
    for name, part in (("train_images", train), ("test_images", test)):
        copy_files((raw / "train_images" / image, public / name / image) for image in part["image"])
    write_csv(train, public / "train.csv")
    write_csv(test, private / "answers.csv")
    write_csv(test.assign(labels="healthy"), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Green leaves of 64 x 48 pixels; each disease has spots of its own colour, number and size."""
    rows = {"tiny": 160, "small": 1600}[size]
    shares = np.array(list(_SHARES.values())) / sum(_SHARES.values())
    labels = rng.choice(list(_SHARES), rows, p=shares)
    images = [f"{hex_id(rng, 16)}.jpg" for _ in range(rows)]
    (raw / "train_images").mkdir()
    for image, label in zip(images, labels, strict=True):
        pixels = rng.normal((95, 105, 90), 8, (48, 64, 3)) + rng.normal(0, 15)
        leaf = ellipse((48, 64), (24 + rng.normal(), 32 + rng.normal()), (17, 27), rng.normal(0, 0.2)) > 0
        pixels[leaf] = rng.normal((70, 130, 55), 10, (int(leaf.sum()), 3)) + rng.normal(0, 10, 3)
        for disease in str(label).split():
            most, radius, colour = _SPOTS.get(disease, (0, 1.0, (0, 0, 0)))
            for _ in range(int(rng.integers(1, most + 1)) if most else 0):
                place = (rng.uniform(12, 36), rng.uniform(12, 52))
                spot = leaf & (ellipse((48, 64), place, tuple(radius * rng.uniform(0.6, 1.3, 2))) > 0)
                pixels[spot] = 0.3 * pixels[spot] + 0.7 * (np.array(colour) + rng.normal(0, 18, 3))
        (raw / "train_images" / image).write_bytes(image_bytes(pixels, "JPEG", quality=90))
    write_csv(pd.DataFrame({"image": images, "labels": labels}), raw / "train.csv")
