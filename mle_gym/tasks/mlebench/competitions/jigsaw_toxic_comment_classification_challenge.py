"""Toxic Comment Classification Challenge: which of six kinds of toxicity does a comment show?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_rows, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import extract, read_csv, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id, sentence, words, write_zip
from mle_gym.tasks.mlebench.probabilities import columns_auc, require_only, scores

KINDS = ("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean of the six ROC AUCs over the rows that are scored; columns after the id go by position, not by name."""
    require_only(submission, ["id", *KINDS])
    require_rows(submission, len(answers))
    values = scores(submission, submission.columns.drop("id").tolist())
    scored = pd.Series(answers[list(KINDS)].sum(axis=1).to_numpy() >= 0, index=answers["id"])
    known = submission["id"].isin(answers["id"]).to_numpy()
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        raise InvalidSubmission(
            f"Column 'id', row {row + 1}: {say(submission['id'].iloc[row])} is not an id of the test set; expected "
            f"the {len(answers):,} ids of the sample submission."
        )
    order = submission["id"].argsort(kind="stable").to_numpy()
    order = order[scored.loc[submission["id"].iloc[order]].to_numpy()]
    truth = answers.loc[scored.to_numpy()].sort_values("id", kind="stable")
    if len(order) != len(truth):
        raise InvalidSubmission(
            f"Column 'id': {len(order):,} of the rows are ones that are scored; expected {len(truth):,}, each id once."
        )
    columns = answers.columns.drop("id").tolist()
    return columns_auc(truth[columns].to_numpy(), values[order], columns)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Kaggle's test set with the labels that were published later; -1 where a row was never scored."""
    for name, folder, file in (
        ("train", public, "train"),
        ("test", public, "test"),
        ("test_labels", private, "test"),
        ("sample_submission", public, "sample_submission"),
    ):
        table = read_csv(extract(raw / f"{name}.csv.zip", raw) / f"{name}.csv")
        if name == "sample_submission":
            table[list(KINDS)] = 0.5
        write_csv(table, folder / f"{file}.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Comments of made-up words; each kind of toxicity has words of its own, which harmless comments use at times."""
    train, test = {"tiny": (800, 500), "small": (5000, 2500)}[size]
    vocabulary = words(rng, 400 + 12 * len(KINDS))
    rude = {kind: [vocabulary.pop() for _ in range(12)] for kind in KINDS}
    rows = []
    for _ in range(train + test):
        toxic = rng.random() < 0.3
        chances = (1.0, 0.3, 0.5, 0.25, 0.5, 0.3)
        flags = [int(toxic and rng.random() < chance) for chance in chances]
        spoken = sentence(rng, vocabulary, int(rng.integers(6, 45))).split()
        for kind, flag in zip(KINDS, flags, strict=True):
            many = rng.poisson(1.1 if flag else 0.06)
            spoken += [rude[kind][place] for place in rng.integers(0, 12, many)]
        text = " ".join(str(word) for word in rng.permutation(spoken)).capitalize()
        text = text.replace(" ", "\n", 1) if rng.random() < 0.1 else text
        rows.append((hex_id(rng, 16), f'"{text}"' if rng.random() < 0.1 else f"{text}.", *flags))
    whole = pd.DataFrame(rows, columns=["id", "comment_text", *KINDS])
    rest = whole[train:].sort_values("id").reset_index(drop=True)
    hidden = rng.random(len(rest)) < 0.3
    labels = rest[["id", *KINDS]].copy()
    labels.loc[hidden, list(KINDS)] = -1
    for name, table in (
        ("train", whole[:train].sort_values("id")),
        ("test", rest[["id", "comment_text"]]),
        ("test_labels", labels),
        ("sample_submission", rest[["id"]].assign(**dict.fromkeys(KINDS, 0.5))),
    ):
        write_zip(raw / f"{name}.csv.zip", {f"{name}.csv": table.to_csv(index=False)})
