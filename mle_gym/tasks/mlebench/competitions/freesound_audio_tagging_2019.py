"""Freesound Audio Tagging 2019: which of 80 sounds does a clip hold?"""

from __future__ import annotations

import io
import shutil
import urllib.request
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns
from mle_gym.tasks.mlebench.files import read_csv, write_csv
from mle_gym.tasks.task import TaskUnavailable

_META = "FSDKaggle2019.meta"
_ZENODO = f"https://zenodo.org/records/3612637/files/{_META}.zip?download=1"
_ROWS = 1 << 16
"""Rows that are ranked at once."""


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Label-weighted label-ranking average precision (lwlrap).

    It equals scikit-learn's ``label_ranking_average_precision_score`` with the numbers of labels as weights, which
    takes 60 times as long: the mean over all labels that are there of the precision at the label's rank.
    """
    require_columns(submission, *map(str, answers.columns), exact=True)
    rows = aligned(submission, answers, "fname")
    classes = list(answers.columns[1:])
    for name in classes:
        numbers(submission, name)
    scores = np.column_stack([numbers(rows, name) for name in classes])
    truth = answers[classes].to_numpy() > 0
    total = 0.0
    for start in range(0, len(truth), _ROWS):
        part, score = truth[start : start + _ROWS], scores[start : start + _ROWS]
        row, label = np.nonzero(part)
        above = score[row] >= score[row, label][:, None]
        total += float(((above & part[row]).sum(axis=1) / above.sum(axis=1)).sum())
    return total / max(int(truth.sum()), 1)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Copy everything, and take the answers from the labels that were published afterwards.

    These are taken from ``FSDKaggle2019.meta.zip`` or the folder of that name beside Kaggle's files, else from Zenodo.
    """
    labels = _published(raw)
    for source in raw.iterdir():
        if source.name.startswith(_META):
            continue
        if source.is_dir():
            shutil.copytree(source, public / source.name)
        else:
            shutil.copyfile(source, public / source.name)
    classes = read_csv(public / "sample_submission.csv", nrows=0).columns[1:]
    test = labels.loc[labels["usage"] == "Private", ["fname"]].reset_index(drop=True)
    tags = [set(cell.split(",")) for cell in labels.loc[labels["usage"] == "Private", "labels"]]
    flags = pd.DataFrame({name: [int(name in cell) for cell in tags] for name in classes})
    write_csv(pd.concat([test, flags], axis=1), private / "test.csv")


def _published(raw: Path) -> pd.DataFrame:
    """File name, labels and usage of all test clips."""
    table = f"{_META}/test_post_competition.csv"
    if (raw / table).is_file():
        return read_csv(raw / table)
    archive: Path | io.BytesIO = raw / f"{_META}.zip"
    if not (raw / f"{_META}.zip").is_file():
        try:
            with urllib.request.urlopen(_ZENODO, timeout=60) as answer:
                archive = io.BytesIO(answer.read())
        except OSError as error:
            raise TaskUnavailable(
                f"The labels of the test clips cannot be fetched ({error}); download {_ZENODO} and put it at {archive}."
            ) from error
    with zipfile.ZipFile(archive) as file, file.open(table) as rows:
        return pd.read_csv(rows)
