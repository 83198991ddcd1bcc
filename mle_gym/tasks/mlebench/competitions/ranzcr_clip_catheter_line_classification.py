"""RANZCR CLiP: which catheters and lines are on a chest X-ray, and are they placed well?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id, image_bytes
from mle_gym.tasks.mlebench.metrics import mean_column_auc

_GRADED = (
    "ETT - Abnormal",
    "ETT - Borderline",
    "ETT - Normal",
    "NGT - Abnormal",
    "NGT - Borderline",
    "NGT - Incompletely Imaged",
    "NGT - Normal",
    "CVC - Abnormal",
    "CVC - Borderline",
)
_LABELS = (*_GRADED, "CVC - Normal", "Swan Ganz Catheter Present")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean over nine of the eleven labels of the area under the ROC curve."""
    return mean_column_auc(submission, answers, "StudyInstanceUID", *_GRADED)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the X-rays and their annotations."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    annotations = read_csv(raw / "train_annotations.csv")
    for name, part in (("train", train), ("test", test)):
        copy_files((raw / "train" / f"{uid}.jpg", public / name / f"{uid}.jpg") for uid in part["StudyInstanceUID"])
    write_csv(train, public / "train.csv")
    kept = annotations["StudyInstanceUID"].isin(train["StudyInstanceUID"])
    write_csv(annotations[kept], public / "train_annotations.csv")
    write_csv(test, private / "test.csv")
    sample = test[["StudyInstanceUID"]].assign(**dict.fromkeys(_GRADED, 0))
    write_csv(sample, public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Grey pictures of 48 x 48 pixels; each label is a bright stroke in a place of its own, at its own angle."""
    rows = {"tiny": 400, "small": 2400}[size]
    (raw / "train").mkdir()
    labels = (rng.random((rows, len(_LABELS))) < rng.uniform(0.25, 0.5, len(_LABELS))).astype(int)
    uids = [f"1.2.826.0.1.3680043.8.498.{''.join(map(str, rng.integers(0, 10, 38)))}" for _ in range(rows)]
    patients = [hex_id(rng, 9) for _ in range(rows // 4)]
    steps = np.arange(11)
    annotations = []
    for uid, row in zip(uids, labels, strict=True):
        pixels = rng.normal(90, 16, (48, 48)) + np.outer(np.linspace(-20, 20, 48), np.ones(48))
        for place, (name, label) in enumerate(zip(_LABELS, row, strict=True)):
            if not label and rng.random() < 0.8:
                continue
            # A line may be hard to see; and a few look like lines that are none.
            strength = rng.uniform(10, 70 if label else 50)
            angle = place * np.pi / len(_LABELS)
            y = np.rint(4 + 11 * (place // 4) + steps * np.sin(angle) + rng.integers(0, 2)).astype(int)
            x = np.rint(10 * (place % 4) + 8 - 5 * (np.cos(angle) < 0) + steps * np.cos(angle)).astype(int)
            pixels[y.clip(0, 47), x.clip(0, 47)] += strength
            if label:
                points = np.column_stack((x, y)).clip(0, 47)[[0, 5, 10]].tolist()
                annotations.append({"StudyInstanceUID": uid, "label": name, "data": str(points)})
        (raw / "train" / f"{uid}.jpg").write_bytes(image_bytes(pixels, "JPEG", quality=85))
    frame = pd.DataFrame(labels, columns=list(_LABELS))
    frame.insert(0, "StudyInstanceUID", uids)
    frame["PatientID"] = rng.choice(patients, rows)
    frame.to_csv(raw / "train.csv", index=False)
    pd.DataFrame(annotations).to_csv(raw / "train_annotations.csv", index=False)
