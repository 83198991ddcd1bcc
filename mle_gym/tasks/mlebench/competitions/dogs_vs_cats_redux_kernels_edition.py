"""Dogs vs. Cats Redux: does a photo show a dog or a cat?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, extract, split_rows, write_csv, zip_files
from mle_gym.tasks.mlebench.imitate import ellipse, image_bytes, write_zip
from mle_gym.tasks.mlebench.probabilities import binary_log_loss


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Log loss of the probability that it is a dog."""
    return binary_log_loss(submission, answers, "id", "label")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled photos and number both parts anew; Kaggle's own test photos have no labels."""
    photos = sorted((extract(raw / "train.zip", raw) / "train").glob("*.jpg"))
    train, test = split_rows(photos, test_size=0.1)
    seen: Counter[str] = Counter()
    names = []
    for photo in train:
        animal = "cat" if "cat" in photo.name else "dog"
        names.append(f"{animal}.{seen[animal]}.jpg")
        seen[animal] += 1
    numbers = range(1, len(test) + 1)
    for folder, part, new in (("train", train, names), ("test", test, [f"{number}.jpg" for number in numbers])):
        copy_files(zip(part, (public / folder / name for name in new), strict=True))
        zip_files(public / f"{folder}.zip", zip(part, new, strict=True))
    answers = pd.DataFrame({"id": numbers, "label": [int("dog" in photo.name) for photo in test]})
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(label=0.5), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Faces of any colour: cats have pointed ears on top, dogs hanging ears and a long snout."""
    each = {"tiny": 150, "small": 800}[size]
    names = [f"{animal}.{number}.jpg" for animal in ("cat", "dog") for number in range(each)]
    photos = {f"train/{name}": _face(rng, dog=name.startswith("dog")) for name in names}
    write_zip(raw / "train.zip", photos)
    write_zip(raw / "test.zip", {f"test/{number}.jpg": _face(rng, dog=number % 2 == 0) for number in range(1, 9)})


def _face(rng: np.random.Generator, *, dog: bool) -> bytes:
    height, width = (int(side) for side in rng.integers(36, 56, 2))
    shape, radius = (height, width), min(height, width) * rng.uniform(0.2, 0.3)
    middle = np.array([height * rng.uniform(0.48, 0.62), width * rng.uniform(0.42, 0.58)])
    fur = rng.uniform(30, 225, 3)
    pixels = rng.uniform(40, 215, 3) + rng.normal(0, 22, (height, width, 3))
    pixels[ellipse(shape, tuple(middle), (radius, radius * rng.uniform(0.9, 1.2))) > 0] = fur
    for side in (-1, 1):
        ear = middle + radius * (np.array([0.1, 1.05 * side]) if dog else np.array([-1.1, 0.65 * side]))
        radii = (radius * rng.uniform(0.5, 0.9), radius * rng.uniform(0.2, 0.4))
        pixels[ellipse(shape, tuple(ear), radii, 0.3 * side) > 0] = fur * rng.uniform(0.6, 1.1)
        eye = middle + radius * np.array([-0.25, 0.4 * side])
        pixels[ellipse(shape, tuple(eye), (2.0, 2.0)) > 0] = rng.uniform(0, 255)
    snout = middle + radius * np.array([0.5, 0.0])
    pixels[ellipse(shape, tuple(snout), (radius * (0.5 if dog else 0.2), radius * 0.3)) > 0] = 255 - fur
    return image_bytes(pixels + rng.normal(0, 10, (height, width, 3)), "JPEG", quality=80)
