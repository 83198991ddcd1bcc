"""ALASKA2 Image Steganalysis: does a photo hide a message?"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns
from mle_gym.tasks.mlebench.files import copy_files, split_rows, write_csv

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
