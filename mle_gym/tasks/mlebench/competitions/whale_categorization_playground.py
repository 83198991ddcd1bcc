"""Humpback Whale Identification Challenge: which whale does a fluke belong to?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id, image_bytes
from mle_gym.tasks.mlebench.pictures import class_looks, class_pixels
from mle_gym.tasks.mlebench.rankings import map_one_truth

_SAMPLE = "new_whale w_1287fbc w_98baff9 w_7554f44 w_1eafe46"


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """MAP@5."""
    require_columns(submission, "Image", "Id")
    if surplus := [str(name) for name in submission.columns if name not in ("Image", "Id")]:
        raise InvalidSubmission(f"The submission has the column {surplus[0]!r}; expected Image and Id only.")
    return map_one_truth(submission, answers, "Image", "Id", 5)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out one photo of each whale that has two, and of the others, and of lone photos, 10 %."""
    table = read_csv(raw / "train.csv")
    side = pd.Series("", index=table.index, dtype=object)
    lone = np.random.default_rng(0)
    for _, photos in table.groupby("Id", sort=False):
        if len(photos) >= 2:
            side[photos.sample(2, random_state=0).index] = np.array(["train", "test"])
        else:
            # Without replacement numpy draws in another way, though there is one draw only.
            side[photos.index] = lone.choice(["train", "test"], replace=False, p=[0.9, 0.1])
    rest = split_rows(table.index[side == ""], test_size=0.1)
    for name, rows in zip(("train", "test"), rest, strict=True):
        side[rows] = name
    train, test = table[side == "train"], table[side == "test"].copy()
    test.loc[~test["Id"].isin(train["Id"]), "Id"] = "new_whale"
    for name, part in (("train", train), ("test", test)):
        copy_files((raw / "train" / image, public / name / image) for image in part["Image"])
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    sample = test.assign(Id=_SAMPLE)
    write_csv(sample, public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Flukes of 32 x 32 pixels, grey or nearly so: each whale has its own pattern; most have few photos."""
    whales, unknown = {"tiny": (45, 12), "small": (320, 100)}[size]
    named = _SAMPLE.split()[1:]
    names = [*named, *(f"w_{hex_id(rng, 7)}" for _ in range(whales - len(named)))]
    looks = class_looks(rng, whales + unknown)
    photos = [(name, look) for name, look in zip(names, looks, strict=False) for _ in range(1 + rng.geometric(0.35))]
    photos = [photo for number, photo in enumerate(photos) if number % 7]  # so that some are left with one photo
    photos += [("new_whale", look) for look in looks[whales:]]
    images = sorted(f"{hex_id(rng, 8)}.jpg" for _ in photos)
    order = rng.permutation(len(photos))
    (raw / "train").mkdir()
    for image, number in zip(images, order, strict=True):
        pixels = class_pixels(rng, photos[number][1], 32, noise=14.0)
        pixels = 0.8 * pixels.mean(axis=2, keepdims=True) + 0.2 * pixels
        (raw / "train" / image).write_bytes(image_bytes(pixels, "JPEG", quality=90))
    write_csv(pd.DataFrame({"Image": images, "Id": [photos[number][0] for number in order]}), raw / "train.csv")
