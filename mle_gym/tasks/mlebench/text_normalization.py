"""What the two competitions on text normalization share: tables of tokens, one row each, numbered by sentence."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import extract, read_csv, split_rows, write_csv, zip_files

__all__ = ["Token", "prepare_tokens", "stand_in_tokens"]

Token = tuple[str, str, str]
"""Class, as written, as spoken."""


def _renumbered(rows: pd.DataFrame) -> pd.DataFrame:
    """Number sentences from 0 in the order in which they stand."""
    return rows.assign(sentence_id=pd.factorize(rows["sentence_id"])[0])


def _with_id(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return ``id`` (sentence and token) and ``after``, which a column gives."""
    ids = [f"{sentence}_{token}" for sentence, token in zip(rows["sentence_id"], rows["token_id"], strict=True)]
    return pd.DataFrame({"id": ids, "after": rows[column].to_numpy()})


def prepare_tokens(raw: Path, public: Path, private: Path, language: str) -> None:
    """Hold out 10 % of the training sentences; the sample submission leaves every token as it is written.

    Args:
        raw: Kaggle's files.
        public: The folder to fill for programs.
        private: The folder to fill for the grader.
        language: ``en`` or ``ru``, which file names begin with.
    """
    tokens = read_csv(extract(raw / f"{language}_train.csv.zip", raw) / f"{language}_train.csv")
    _, held_out = split_rows(tokens["sentence_id"].unique(), test_size=0.1)
    chosen = tokens["sentence_id"].isin(held_out)
    train, test = _renumbered(tokens[~chosen]), _renumbered(tokens[chosen])
    sample = _with_id(test, "before")
    tables = {"train": train, "test_2": test.drop(columns=["class", "after"]), "sample_submission_2": sample}
    for kind, table in tables.items():
        name = f"{language}_{kind}.csv"
        place = raw / "prepared" / name
        write_csv(table, place, quoting=csv.QUOTE_NONNUMERIC)
        zip_files(public / f"{name}.zip", [(place, name)])
        place.unlink()
    write_csv(_with_id(test, "after"), private / "answers.csv", quoting=csv.QUOTE_NONNUMERIC)
    write_csv(sample, private / "sample_submission.csv", quoting=csv.QUOTE_NONNUMERIC)


def stand_in_tokens(
    raw: Path,
    rng: np.random.Generator,
    size: Size,
    language: str,
    write_sentence: Callable[[np.random.Generator], list[Token]],
) -> None:
    """Write a language's three archives, with sentences that a function invents."""
    count = {"tiny": 300, "small": 4000}[size]
    rows = [
        (sentence, position, *token) for sentence in range(count) for position, token in enumerate(write_sentence(rng))
    ]
    train = pd.DataFrame(rows, columns=["sentence_id", "token_id", "class", "before", "after"])
    later = train[train["sentence_id"] < 5]
    tables = {
        "train": train,
        "test_2": later[["sentence_id", "token_id", "before"]],
        "sample_submission_2": _with_id(later, "before"),
    }
    for kind, table in tables.items():
        name = f"{language}_{kind}.csv"
        with zipfile.ZipFile(raw / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, table.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC))
