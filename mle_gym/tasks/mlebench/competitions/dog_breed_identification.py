"""Dog Breed Identification: which of 120 breeds does a photo show?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.catalogue import catalogue
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import ellipse, hex_id, image_bytes
from mle_gym.tasks.mlebench.probabilities import class_log_loss, one_hot


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Log loss over the breeds."""
    return class_log_loss(submission, answers, "id", answers.columns.drop("id").tolist())


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled photos."""
    breeds = list(catalogue()["dog-breed-identification"].target)
    train, test = split_rows(read_csv(raw / "labels.csv"), test_size=0.1)
    write_csv(train, public / "labels.csv")
    answers = one_hot(test, "id", "breed", breeds)
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(**dict.fromkeys(breeds, 1 / 120)), public / "sample_submission.csv")
    for name, part in (("train", train), ("test", test)):
        copy_files((raw / "train" / f"{photo}.jpg", public / name / f"{photo}.jpg") for photo in part["id"])


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Dogs are ellipses on blurred grass; a breed has its coat, its patches and its build."""
    breeds = catalogue()["dog-breed-identification"].target
    each = {"tiny": 3, "small": 20}[size]
    coats, patches = rng.uniform(20, 240, (2, len(breeds), 3))
    builds = rng.uniform(0.5, 1.6, len(breeds))
    (raw / "train").mkdir()
    rows = []
    for label in rng.permutation(np.repeat(np.arange(len(breeds)), each)):
        height, width = (int(side) for side in rng.integers(40, 65, 2))
        ground = np.linspace(rng.uniform(60, 200, 3), rng.uniform(60, 160, 3), height)[:, None]
        pixels = ground + rng.normal(0, 14, (height, width, 3))
        centre = height * rng.uniform(0.4, 0.6), width * rng.uniform(0.4, 0.6)
        long = min(height, width) * rng.uniform(0.25, 0.4)
        body = ellipse((height, width), centre, (long * builds[label], long), rng.uniform(-0.5, 0.5))
        pixels[body > 0] += coats[label] + rng.normal(0, 25, 3) - 120
        pixels[body > rng.uniform(0.4, 0.7)] = patches[label] + rng.normal(0, 25, 3)
        photo = hex_id(rng)
        (raw / "train" / f"{photo}.jpg").write_bytes(image_bytes(pixels, "JPEG", quality=80))
        rows.append((photo, breeds[label]))
    write_csv(pd.DataFrame(rows, columns=["id", "breed"]), raw / "labels.csv")
