"""ALASKA2 Image Steganalysis: does a photo hide a message?"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import image_bytes

_METHODS = ("JMiPOD", "JUNIWARD", "UERD")
_BANDS = ((0.0, 0.4, 2.0), (0.4, 1.0, 1.0))
"""From, to, weight: the area counts double where the true positive rate is at most 0.4."""


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Weighted area under the ROC curve."""
    from sklearn.metrics import auc, roc_curve

    require_columns(submission, "Id", "Label")
    rows = aligned(submission, answers, "Id")
    numbers(submission, "Label")
    if answers["Label"].nunique() < 2:
        raise InvalidSubmission("The answers hold one class only, so there is no ROC curve.")
    false, true, _ = roc_curve(answers["Label"], numbers(rows, "Label"))
    cuts = np.array([0.0, 0.4, 1.0])
    at = np.searchsorted(true, cuts, side="right")
    false = np.insert(false, at, np.interp(cuts, true, false))
    true = np.insert(true, at, cuts)
    area = 0.0
    for low, high, weight in _BANDS:
        band = (low <= true) & (true <= high)
        x, y = np.append(false[band], 1.0), np.append(true[band], high) - low
        area += weight * auc(x, y)
    return float(area / sum((high - low) * weight for low, high, weight in _BANDS))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 5,000 photos; half of them as they are, the others with a message hidden by one of three methods."""
    photos = [photo.name for photo in sorted((raw / "Cover").glob("*.jpg"))]
    train, test = split_rows(photos, test_size=5000 if len(photos) > 5000 else 0.3, random_state=42)
    for method in ("Cover", *_METHODS):
        numbered = ((photo, f"{number:05d}.jpg") for number, photo in enumerate(train, start=1))
        copy_files((raw / method / photo, public / method / name) for photo, name in numbered)
    draw = random.Random(0)
    draw.shuffle(test)
    labels = []
    for number, photo in enumerate(test, start=1):
        method = "Cover" if draw.choice([True, False]) else draw.choice(_METHODS)
        copy_files([(raw / method / photo, public / "Test" / f"{number:04d}.jpg")])
        labels.append(int(method != "Cover"))
    answers = pd.DataFrame({"Id": [f"{number:04d}.jpg" for number in range(1, len(test) + 1)], "Label": labels})
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(Label=0), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Photos of 48 x 48 pixels; a message is faint noise, spread evenly or where the photo has structure."""
    rows = {"tiny": 96, "small": 520}[size]
    for method in ("Cover", *_METHODS):
        (raw / method).mkdir()
    down, across = np.mgrid[:48, :48] / 48.0
    for number in range(1, rows + 1):
        waves = rng.uniform(-6, 6, (6, 2))
        grey = sum(np.sin(2 * np.pi * (y * down + x * across) + rng.uniform(0, 6)) for y, x in waves)
        photo = 128 + 18 * grey[..., None] + rng.normal(0, 20, 3) + rng.normal(0, rng.uniform(1, 4), (48, 48, 3))
        structure = np.hypot(*np.gradient(grey))
        hidden = {
            "JMiPOD": np.ones_like(structure),
            "JUNIWARD": structure / structure.mean(),
            "UERD": (structure > np.median(structure)) * 1.6,
        }
        quality = int(rng.choice([90, 95]))
        strength = rng.uniform(1, 2.8)
        pictures = {"Cover": photo}
        for method, where in hidden.items():
            pictures[method] = photo + strength * (where * rng.choice([-1, 1], where.shape))[..., None]
        for method, pixels in pictures.items():
            content = image_bytes(pixels, "JPEG", quality=quality)
            (raw / method / f"{number:05d}.jpg").write_bytes(content)
