"""SETI Breakthrough Listen: is there a needle of a signal in a telescope's spectrograms?"""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id
from mle_gym.tasks.mlebench.metrics import binary_auc


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Area under the ROC curve."""
    return binary_auc(submission, answers, "id", "target")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled cadences; the withdrawn older data go along."""
    train, test = split_rows(read_csv(raw / "train_labels.csv"), test_size=0.1)
    for name, part in (("train", train), ("test", test)):
        places = (Path(cadence[0]) / f"{cadence}.npy" for cadence in part["id"])
        copy_files((raw / "train" / place, public / name / place) for place in places)
    shutil.copytree(raw / "old_leaky_data", public / "old_leaky_data")
    write_csv(train, public / "train_labels.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.assign(target=0.5), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Six spectrograms of 34 x 32 in float16; a needle drifts through those on target, a disturbance through all."""
    rows = {"tiny": 260, "small": 560}[size]
    ids = ["0123456789abcdef"[row % 16] + hex_id(rng, 14) for row in range(rows)]
    labels = (rng.random(rows) < 0.3).astype(int)
    for cadence, label in zip(ids, labels, strict=True):
        _save(raw / "train" / cadence[0] / f"{cadence}.npy", _cadence(rng, bool(label)))
    pd.DataFrame({"id": ids, "target": labels}).to_csv(raw / "train_labels.csv", index=False)
    old = ["0123456789abcdef"[row % 16] + hex_id(rng, 11) for row in range(8)]
    for row, cadence in enumerate(old):
        _save(raw / "old_leaky_data" / "train_old" / cadence[0] / f"{cadence}.npy", _cadence(rng, row % 2 == 1))
    frame = pd.DataFrame({"id": old, "target": np.arange(8) % 2})
    frame.to_csv(raw / "old_leaky_data" / "train_labels_old.csv", index=False)


def _cadence(rng: np.random.Generator, needle: bool) -> NDArray[np.float16]:
    values = rng.normal(0.0, 1.0, (6, 34, 32))
    times = np.arange(34)

    def path() -> NDArray[np.int64]:
        return (rng.uniform(4, 28) + rng.uniform(-0.3, 0.3) * times + 32).astype(np.int64) % 32

    if rng.random() < 0.4:
        values[:, times, path()] += rng.uniform(1.0, 3.0)
    if needle:
        values[::2, times, path()] += rng.uniform(0.7, 2.5)
    return values.astype(np.float16)


def _save(path: Path, values: NDArray[np.float16]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.save(buffer, values)
    path.write_bytes(buffer.getvalue())
