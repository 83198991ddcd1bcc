"""Freesound Audio Tagging 2019: which of 80 sounds does a clip hold?"""

from __future__ import annotations

import io
import shutil
import urllib.request
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.catalogue import catalogue
from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id, wav_bytes, write_zip
from mle_gym.tasks.task import TaskUnavailable

_META = "FSDKaggle2019.meta"
COMPANIONS = (f"{_META}.zip", "meta.zip")
"""The labels of the test clips, which were published after the competition."""
_ZENODO = f"https://zenodo.org/records/3612637/files/{_META}.zip?download=1"
_RATE, _SAMPLES = 16_000, 3_200
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

    They come from ``FSDKaggle2019.meta.zip`` (or ``meta.zip``, or the folder of that name) in or beside the folder of
    Kaggle's files, else from Zenodo.
    """
    labels = _published(raw)
    for source in raw.iterdir():
        if source.name.startswith(_META) or source.name in COMPANIONS:
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
    here = next((raw / name for name in COMPANIONS if (raw / name).is_file()), None)
    archive: Path | io.BytesIO = here or raw / COMPANIONS[0]
    if here is None:
        try:
            with urllib.request.urlopen(_ZENODO, timeout=60) as answer:
                archive = io.BytesIO(answer.read())
        except OSError as error:
            raise TaskUnavailable(
                f"The labels of the test clips cannot be fetched ({error}); download {_ZENODO} and put it at {archive}."
            ) from error
    with zipfile.ZipFile(archive) as file, file.open(table) as rows:
        return pd.read_csv(rows)


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Clips of a fifth of a second: each sound has a pitch, overtones and a beat; noisy labels are often wrong."""
    counts = {"tiny": (100, 40, 48), "small": (420, 140, 160)}[size]
    classes = catalogue()["freesound-audio-tagging-2019"].target
    looks = np.column_stack(
        [
            120 * 25 ** rng.permutation(np.linspace(0, 1, len(classes))),
            rng.uniform(0, 1, (len(classes), 3)),
            rng.choice([0.0, 12.0, 30.0], len(classes)),
        ]
    )
    tables = []
    for name, count in zip(("train_curated", "train_noisy", "test"), counts, strict=True):
        clips, labels = {}, []
        for number in range(count):
            first = number % len(classes) if name == "train_curated" else rng.integers(len(classes))
            heard = {int(first), *rng.integers(len(classes), size=rng.choice(3, p=[0.8, 0.15, 0.05])).tolist()}
            sound = sum(_sound(rng, looks[label]) for label in heard) + rng.normal(0, 0.1, _SAMPLES)
            clips[f"{hex_id(rng, 8)}.wav"] = wav_bytes(0.3 * sound, _RATE)
            if name == "train_noisy" and rng.random() < 0.4:
                heard = {int(rng.integers(len(classes)))}
            labels.append(",".join(classes[label] for label in sorted(heard)))
        table = pd.DataFrame({"fname": list(clips), "labels": labels}).sort_values("fname", ignore_index=True)
        tables.append(table)
        write_zip(raw / f"{name}.zip", dict(sorted(clips.items())))
        if name != "test":
            write_csv(table, raw / f"{name}.csv")
    test = tables[-1]
    write_csv(test[["fname"]].assign(**dict.fromkeys(classes, 0)), raw / "sample_submission.csv")
    # The clips of the public leaderboard are in the published table, but not among Kaggle's files.
    public = tables[0].head(10).assign(fname=[f"{hex_id(rng, 8)}.wav" for _ in range(10)], usage="Public")
    everything = pd.concat([test.assign(usage="Private"), public])
    write_zip(raw / f"{_META}.zip", {f"{_META}/test_post_competition.csv": everything.to_csv(index=False)})


def _sound(rng: np.random.Generator, look: NDArray[np.float64]) -> NDArray[np.float64]:
    time = np.arange(_SAMPLES) / _RATE
    pitch = look[0] * np.exp(rng.normal(0, 0.015))
    tone = np.sin(2 * np.pi * pitch * time + rng.uniform(0, 6))
    for overtone, share in enumerate(look[1:4], start=2):
        tone += share * np.sin(2 * np.pi * overtone * pitch * time + rng.uniform(0, 6))
    beat = 1 + 0.8 * np.sin(2 * np.pi * look[4] * time + rng.uniform(0, 6))
    loud: NDArray[np.float64] = tone * beat * rng.uniform(0.3, 1) * np.exp(-time * rng.uniform(0, 12))
    return loud
