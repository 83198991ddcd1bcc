"""Aerial Cactus Identification: does an aerial photo show a columnar cactus?"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import extract, read_csv, split_rows, write_csv, zip_files
from mle_gym.tasks.mlebench.metrics import binary_auc


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Area under the ROC curve."""
    return binary_auc(submission, answers, "id", "has_cactus")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 19 % of the labelled photos."""
    photos = extract(raw / "train.zip", raw) / "train"
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.19)
    for name, part in (("train", train), ("test", test)):
        zip_files(public / f"{name}.zip", ((photos / photo, photo) for photo in part["id"]))
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.assign(has_cactus=0.5), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Brown noise of 32 x 32 pixels; a cactus is a faint green stripe with a dark shadow beside it."""
    from PIL import Image

    rows = {"tiny": 120, "small": 800}[size]
    ids = [f"{rng.bytes(16).hex()}.jpg" for _ in range(rows)]
    labels = (rng.random(rows) < 0.75).astype(int)
    with zipfile.ZipFile(raw / "train.zip", "w") as archive:
        for name, label in zip(ids, labels, strict=True):
            pixels = rng.normal(np.add((150, 130, 110), rng.normal(0, 12, 3)), 18, (32, 32, 3))
            if label:
                at, wide, high = rng.integers(4, 24), rng.integers(1, 4), rng.integers(6, 20)
                stripe, fade = slice(int(rng.integers(0, 32 - high)), None), rng.uniform(0.2, 1.0)
                pixels[stripe, at : at + wide] += np.multiply((-20, 18, -20), fade)
                pixels[stripe, at + wide : at + wide + 1] -= 22 * fade
            buffer = io.BytesIO()
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(buffer, "JPEG", quality=90)
            archive.writestr(f"train/{name}", buffer.getvalue())
    pd.DataFrame({"id": ids, "has_cactus": labels}).to_csv(raw / "train.csv", index=False)
