"""Dogs vs. Cats Redux: does a photo show a dog or a cat?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, extract, split_rows, write_csv, zip_files
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
