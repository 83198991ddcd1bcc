"""ML2021Spring-hw2: which phoneme is spoken in a frame of speech?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import split_rows, write_csv
from mle_gym.tasks.mlebench.metrics import accuracy

_PHONES, _FEATURES = 39, 39
_FOLDER = "timit_11/timit_11"


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Accuracy."""
    return accuracy(submission, answers, "Id", "ClassId")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out as large a part of the labelled frames as Kaggle's test set was of all frames, about 27 %."""
    source, place = raw / _FOLDER, public / _FOLDER
    frames, labels = np.load(source / "train_11.npy", mmap_mode="r"), np.load(source / "train_label_11.npy")
    unlabelled = len(np.load(source / "test_11.npy", mmap_mode="r"))
    train, test = split_rows(range(len(frames)), test_size=unlabelled / (len(frames) + unlabelled))
    place.mkdir(parents=True)
    np.save(place / "train_11.npy", frames[train])
    np.save(place / "test_11.npy", frames[test])
    np.save(place / "train_label_11.npy", labels[train])
    answers = pd.DataFrame({"Id": range(len(test)), "ClassId": labels[test]})
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(ClassId=0), public / "sampleSubmission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Frames of phones that follow one another and flow into each other; a row is a frame with five on each side."""
    rows = {"tiny": (900, 330), "small": (4000, 1460)}[size]
    means = rng.normal(0, 1, (_PHONES, _FEATURES)) * np.exp(-np.arange(_FEATURES) / 15)
    after = rng.dirichlet(np.full(_PHONES, 0.3), _PHONES)
    place = raw / _FOLDER
    place.mkdir(parents=True)
    for name, count in zip(("train", "test"), rows, strict=True):
        phones, phone = np.empty(count + 10, dtype=int), int(rng.integers(_PHONES))
        start = 0
        while start < len(phones):
            length = int(rng.integers(3, 12))
            phones[start : start + length] = phone
            start, phone = start + length, int(rng.choice(_PHONES, p=after[phone]))
        frames = means[phones] + rng.normal(0, 1.7, (len(phones), _FEATURES))
        frames = (np.roll(frames, 1, axis=0) + 2 * frames + np.roll(frames, -1, axis=0)) / 4
        windows = np.hstack([frames[shift : shift + count] for shift in range(11)])
        np.save(place / f"{name}_11.npy", windows.astype(np.float32))
        if name == "train":
            np.save(place / "train_label_11.npy", phones[5 : 5 + count].astype("<U2"))
