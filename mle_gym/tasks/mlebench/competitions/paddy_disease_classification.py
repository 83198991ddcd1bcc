"""Paddy Doctor: which disease does a photo of a rice plant show?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.labels import labels, same_share
from mle_gym.tasks.mlebench.pictures import class_looks, class_photo, mixed_up

_LABELS = (
    "bacterial_leaf_blight",
    "bacterial_leaf_streak",
    "bacterial_panicle_blight",
    "blast",
    "brown_spot",
    "dead_heart",
    "downy_mildew",
    "hispa",
    "normal",
    "tungro",
)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of photos with the right label; an empty cell is a wrong one."""
    require_columns(submission, "image_id", "label")
    cells = submission["label"]
    if cells.isna().all() or any(isinstance(cell, str) for cell in cells):
        submission = submission.assign(label=cells.astype(object).where(cells.notna(), ""))
    predicted = labels(submission, "label", "the name of a disease")
    rows = aligned(submission.assign(label=predicted), answers, "image_id")
    return same_share(labels(answers, "label"), labels(rows, "label"), "label", "the name of a disease")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 25 % of the labelled photos."""
    train, test = split_rows(read_csv(raw / "train.csv"), train_size=0.75)
    photos = raw / "train_images"
    copy_files((photos / label / name, public / "train_images" / label / name) for name, label in _photos(train))
    copy_files((photos / label / name, public / "test_images" / name) for name, label in _photos(test))
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test[["image_id"]].assign(label=""), public / "sample_submission.csv")


def _photos(part: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Pairs of file name and label."""
    return zip(part["image_id"], part["label"], strict=True)


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Striped leaves; the disease decides colour and stripes, the variety goes with the disease a little."""
    rows = {"tiny": 140, "small": 2000}[size]
    disease = np.sort(rng.integers(0, len(_LABELS), rows))
    looks = class_looks(rng, len(_LABELS))
    table = pd.DataFrame(
        {
            "image_id": [f"{100001 + number}.jpg" for number in rng.permutation(rows)],
            "label": [_LABELS[label] for label in disease],
            "variety": np.where(rng.random(rows) < 0.7, "ADT45", np.array(["KarnatakaPonni", "Ponni"])[disease % 2]),
            "age": 45 + 5 * rng.integers(0, 8, rows),
        }
    )
    shown = mixed_up(rng, disease, len(_LABELS), 0.08)
    for (name, label), look in zip(_photos(table), shown, strict=True):
        path = raw / "train_images" / label / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(class_photo(rng, looks[look]))
    write_csv(table, raw / "train.csv")
    write_csv(pd.DataFrame({"image_id": ["200001.jpg"], "label": [""]}), raw / "sample_submission.csv")
