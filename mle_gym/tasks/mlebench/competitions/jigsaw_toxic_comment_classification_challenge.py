"""Toxic Comment Classification Challenge: which of six kinds of toxicity does a comment show?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_rows, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import extract, read_csv, write_csv
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
