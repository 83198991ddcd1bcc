"""APTOS 2019 Blindness Detection: how severe is the diabetic retinopathy that a photo of the retina shows?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.checks import aligned, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import ellipse, hex_id, image_bytes, split_labels
from mle_gym.tasks.mlebench.labels import quadratic_kappa, whole_numbers


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Cohen's kappa with quadratic weights."""
    require_columns(submission, "id_code", "diagnosis")
    grades = whole_numbers(submission, "diagnosis")
    rows = aligned(submission.assign(diagnosis=grades), answers, "id_code")
    return quadratic_kappa(answers["diagnosis"].to_numpy(), rows["diagnosis"].to_numpy())


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled photos."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    for name, part in (("train", train), ("test", test)):
        copy_files(
            (raw / "train_images" / f"{code}.png", public / f"{name}_images" / f"{code}.png")
            for code in part["id_code"]
        )
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test[["id_code"]], public / "test.csv")
    write_csv(test[["id_code"]].assign(diagnosis=0), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """An orange disc with a bright nerve; the severer the disease, the more dark spots, and later pale ones."""
    rows = {"tiny": 280, "small": 2000}[size]
    codes = [hex_id(rng, 12) for _ in range(rows)]
    grades = split_labels(rng, rows, (0.49, 0.10, 0.27, 0.06, 0.08))
    folder = raw / "train_images"
    folder.mkdir()
    for code, level in zip(codes, grades.tolist(), strict=True):
        (folder / f"{code}.png").write_bytes(image_bytes(_retina(rng, level)))
    write_csv(pd.DataFrame({"id_code": codes, "diagnosis": grades}), raw / "train.csv")


def _retina(rng: np.random.Generator, level: int, side: int = 40) -> NDArray[np.float64]:
    """Draw a retina, shape ``(side, side, 3)``."""
    disc = ellipse((side, side), (side / 2, side / 2), (side * 0.47, side * 0.47))
    pixels = np.full((side, side, 3), rng.normal((170, 85, 35), (18, 10, 6)))
    pixels += 25 * disc[..., None] + rng.normal(0, 3, (side, side, 1))
    y, x = rng.normal(side / 2, side / 8, 2)
    pixels[ellipse((side, side), (y, x), (3, 3)) > 0] += 60
    for pale, mean in ((False, 1.3 * level + 0.4), (True, 1.2 * max(level - 2, 0) + 0.2)):
        for _ in range(rng.poisson(mean)):
            (y, x), (high, wide) = rng.uniform(side * 0.2, side * 0.8, 2), rng.uniform(1, 2.5, 2)
            spot = ellipse((side, side), (y, x), (high, wide))
            pixels[spot > 0] += (60, 70, 30) if pale else (-75, -45, -15)
    pixels[disc < 0] = 0
    return pixels.clip(0, 255) // 4 * 4
