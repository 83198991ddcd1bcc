"""Hotel-ID 2021: in which hotel was a photo of a room taken?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id, image_bytes
from mle_gym.tasks.mlebench.pictures import class_looks, class_pixels
from mle_gym.tasks.mlebench.rankings import map_one_truth

_SAMPLE = "36363 53586 18807 64314 60181"
_BROKEN = "ce27d36c9147cc19.jpg"
"""A photo that MLE-bench leaves out."""


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """MAP@5."""
    return map_one_truth(submission, answers, "image", "hotel_id", 5)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the photos; test photos lie in one folder, training photos in a folder for each chain."""
    table = read_csv(raw / "train.csv")
    train, test = split_rows(table[table["image"] != _BROKEN], test_size=0.1)
    for name, part in (("train_images", train), ("test_images", test)):
        for image, chain in zip(part["image"], part["chain"], strict=True):
            place = public / name if part is test else public / name / str(chain)
            copy_files([(raw / "train_images" / str(chain) / image, place / image)])
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    sample = test[["image"]].assign(hotel_id=_SAMPLE)
    write_csv(sample, public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Rooms of 40 x 40 pixels: each hotel has a wallpaper of its own, with a touch of its chain's colour."""
    rows, hotels = {"tiny": (260, 20), "small": (1800, 90)}[size]
    known = [int(hotel) for hotel in _SAMPLE.split()]
    others = np.setdiff1d(np.arange(100, 65_000), known)
    ids = np.concatenate([known, rng.choice(others, hotels - len(known), replace=False)])
    chain, tints = rng.integers(8, size=hotels), rng.normal(0, 20, (8, 3))
    looks = class_looks(rng, hotels)
    start = pd.Timestamp("2015-01-01")
    table = []
    for _ in range(rows):
        hotel = int(hotels * rng.beta(1, 1.5))
        pixels = class_pixels(rng, looks[hotel], 40, noise=60.0) + tints[chain[hotel]] + rng.normal(0, 20, 3)
        pixels[rng.integers(24, 30) :, rng.integers(0, 12) : rng.integers(20, 40)] = rng.uniform(40, 220, 3)  # luggage
        place = raw / "train_images" / str(chain[hotel])
        place.mkdir(parents=True, exist_ok=True)
        image = f"{hex_id(rng, 16)}.jpg"
        (place / image).write_bytes(image_bytes(pixels, "JPEG", quality=85))
        when = start + pd.Timedelta(seconds=int(rng.integers(160_000_000)))
        table.append((image, chain[hotel], ids[hotel], str(when)))
    write_csv(pd.DataFrame(table, columns=["image", "chain", "hotel_id", "timestamp"]), raw / "train.csv")
