"""Spooky Author Identification: did Poe, Lovecraft or Mary Shelley write a sentence?"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import extract, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import sentence, words, write_zip
from mle_gym.tasks.mlebench.probabilities import class_log_loss, one_hot, require_only

AUTHORS = ("EAP", "HPL", "MWS")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Log loss over the authors; the id must be the first of four columns."""
    require_only(submission, ["id", *AUTHORS])
    if submission.columns[0] != "id":
        raise InvalidSubmission(f"Column 'id' must be the first one; the first is {submission.columns[0]!r}.")
    return class_log_loss(submission, answers, "id", AUTHORS)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the sentences."""
    train, test = split_rows(read_csv(extract(raw / "train.zip", raw) / "train.csv"), test_size=0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="author"), public / "test.csv")
    answers = one_hot(test, "id", "author", AUTHORS)
    write_csv(answers, private / "test.csv")
    # Kaggle's own sample: the shares of the authors in its training data.
    sample = answers.assign(EAP=0.403493538995863, HPL=0.287808366106543, MWS=0.308698094897594)
    write_csv(sample, public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Sentences of made-up words; each author likes some of them better than the others do."""
    rows = {"tiny": 400, "small": 4000}[size]
    labels = rng.choice(len(AUTHORS), rows, p=(0.4, 0.29, 0.31))
    vocabulary = words(rng, 500)
    tastes = [_taste(rng, vocabulary) for _ in AUTHORS]
    commas = rng.uniform(0.02, 0.12, len(AUTHORS))
    texts = []
    for label in labels:
        spoken = sentence(rng, tastes[label], int(rng.integers(8, 40))).split()
        marks = [word + "," * int(rng.random() < commas[label]) for word in spoken]
        texts.append(" ".join(marks).rstrip(",").capitalize() + ".")
    ids = [f"id{number:05d}" for number in rng.permutation(30_000)[:rows]]
    frame = pd.DataFrame({"id": ids, "text": texts, "author": np.array(AUTHORS)[labels]})
    write_zip(raw / "train.zip", {"train.csv": frame.to_csv(index=False, quoting=csv.QUOTE_ALL)})


def _taste(rng: np.random.Generator, vocabulary: list[str]) -> list[str]:
    """The words in the order in which an author likes them: a little different for each."""
    ranks = np.log(np.arange(1, len(vocabulary) + 1)) + rng.normal(0, 0.35, len(vocabulary))
    return [vocabulary[place] for place in np.argsort(ranks)]
