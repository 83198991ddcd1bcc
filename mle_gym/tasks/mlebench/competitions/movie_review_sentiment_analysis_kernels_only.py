"""Movie Review Sentiment Analysis: how positive is a phrase, from 0 to 4?"""

from __future__ import annotations

import zipfile
from pathlib import Path

import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import extract, read_csv, split_rows, write_csv, zip_files
from mle_gym.tasks.mlebench.metrics import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of phrases with the right label."""
    return accuracy(submission, answers, "PhraseId", "Sentiment")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 30 % of the labelled phrases."""
    train, test = split_rows(read_csv(extract(raw / "train.tsv.zip", raw) / "train.tsv", sep="\t"), test_size=0.3)
    for name, rows in (("train.tsv", train), ("test.tsv", test.drop(columns="Sentiment"))):
        place = raw / "prepared" / name
        write_csv(rows, place, sep="\t")
        zip_files(public / f"{name}.zip", [(place, name)], compression=zipfile.ZIP_DEFLATED)
    write_csv(test, private / "answers.csv")
    write_csv(test[["PhraseId"]].assign(Sentiment=2), public / "sampleSubmission.csv")
