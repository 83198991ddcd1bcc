"""ML2021Spring-hw2: which phoneme is spoken in a frame of speech?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.files import split_rows, write_csv
from mle_gym.tasks.mlebench.metrics import accuracy

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
