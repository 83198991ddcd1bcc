"""HMS Harmful Brain Activity Classification: how do experts vote on an EEG?"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import numbers, require_columns, require_rows, require_same_ids, row_sums
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.probabilities import probabilities, rounds_to_one

PATTERNS = ("seizure", "lpd", "gpd", "lrda", "grda", "other")
VOTES = tuple(f"{pattern}_vote" for pattern in PATTERNS)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean over rows of the Kullback-Leibler divergence from the votes' shares."""
    from scipy.special import rel_entr

    require_columns(submission, "eeg_id", *VOTES)
    require_rows(submission, len(answers))
    values = probabilities(submission, VOTES)
    row_sums(values, rounds_to_one(values, 5))
    require_same_ids(submission, answers, "eeg_id")
    # Kaggle's metric sums over all columns; others may be there if they add nothing.
    for column in submission.columns.drop(["eeg_id", *VOTES]):
        extra = numbers(submission, column, low=0.0, high=1.0, allow_nan=True)
        values = np.column_stack([values, np.nan_to_num(extra)])
        both = f"the probabilities and the column {str(column)[:40]!r}, which is one too many,"
        row_sums(values, np.isclose(values.sum(axis=1), 1.0), both)
    # Ids repeat: the k-th row of an id in one table belongs to the k-th in the other.
    order = submission["eeg_id"].argsort(kind="stable").to_numpy()
    guess = values[order, : len(VOTES)].clip(1e-15, 1 - 1e-15)
    votes = answers.sort_values("eeg_id", kind="stable")[list(VOTES)].to_numpy(dtype=np.float64)
    return float(rel_entr(votes / votes.sum(axis=1, keepdims=True), guess).sum(axis=1).mean())


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the spectrograms with all that belongs to them."""
    whole = read_csv(raw / "train.csv")
    kept, _ = split_rows(whole["spectrogram_id"].unique(), test_size=0.1)
    inside = whole["spectrogram_id"].isin(kept)
    train, test = whole[inside], whole[~inside]
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test[["spectrogram_id", "eeg_id", "patient_id"]], public / "test.csv")
    votes = list(VOTES)
    gold = test[["eeg_id", *votes]].copy()
    gold[votes] = gold[votes].div(gold[votes].sum(axis=1), axis=0)
    write_csv(gold, private / "gold_submission.csv")
    write_csv(gold.assign(**dict.fromkeys(votes, 1 / 6)), public / "sample_submission.csv")
    shutil.copytree(raw / "example_figures", public / "example_figures")
    for name, part in (("train", train), ("test", test)):
        for kind in ("eeg", "spectrogram"):
            files = [f"{number}.parquet" for number in part[f"{kind}_id"].unique()]
            copy_files((raw / f"train_{kind}s" / file, public / f"{name}_{kind}s" / file) for file in files)
