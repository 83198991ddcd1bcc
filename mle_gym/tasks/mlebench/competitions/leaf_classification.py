"""Leaf Classification: which of 99 plant species is a leaf from?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.catalogue import catalogue
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, extract, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import ellipse, image_bytes, write_zip
from mle_gym.tasks.mlebench.probabilities import class_log_loss, one_hot, require_only


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Log loss over the species; no other columns are allowed."""
    species = answers.columns.drop("id").tolist()
    require_only(submission, ["id", *species])
    return class_log_loss(submission, answers, "id", species)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled leaves; the pictures of both parts lie in one folder."""
    species = list(catalogue()["leaf-classification"].target)
    extract(raw / "train.csv.zip", raw)
    pictures = extract(raw / "images.zip", raw) / "images"
    whole = read_csv(raw / "train.csv")
    train, test = split_rows(whole, test_size=0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="species"), public / "test.csv")
    answers = one_hot(test, "id", "species", species)
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(**dict.fromkeys(species, 1 / 99)), public / "sample_submission.csv")
    copy_files((pictures / f"{leaf}.jpg", public / "images" / f"{leaf}.jpg") for leaf in whole["id"])


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """White ellipses with a wavy margin; margin, shape and texture are histograms around the species' own."""
    species = catalogue()["leaf-classification"].target
    labels = rng.permutation(np.repeat(np.arange(len(species)), {"tiny": 3, "small": 10}[size]))
    ids = np.sort(rng.permutation(int(len(labels) * 1.6))[: len(labels)]) + 1
    table = {"id": ids, "species": np.array(species)[labels]}
    for kind, sharpness in (("margin", 1.2), ("shape", 6.0), ("texture", 0.6)):
        typical = rng.gamma(1.0, 1.0, (len(species), 64))
        noisy = rng.gamma(sharpness * typical[labels] + 0.2)
        shares = noisy / noisy.sum(axis=1, keepdims=True)
        # Kaggle's histograms have 1024 counts; the shape is a curve scaled to sum to a small number.
        values = (shares / 20).round(9) if kind == "shape" else ((shares * 1024).round() / 1024).round(6)
        table |= {f"{kind}{place + 1}": values[:, place] for place in range(64)}
    frame = pd.DataFrame(table)
    slim = rng.uniform(0.3, 1.0, len(species))
    pictures = {}
    for leaf, label in zip(ids, labels, strict=True):
        height, width = (int(side) for side in rng.integers(40, 70, 2))
        radius = min(height, width) * 0.45
        inside = ellipse((height, width), (height / 2, width / 2), (radius, radius * slim[label]), rng.uniform(0, 3))
        waves = np.sin(np.arange(height)[:, None] * (0.3 + label / 60)) * 0.08
        pictures[f"images/{leaf}.jpg"] = image_bytes((inside + waves > 0) * 255.0, "JPEG", quality=60)
    write_zip(raw / "images.zip", pictures)
    write_zip(raw / "train.csv.zip", {"train.csv": frame.to_csv(index=False)})
