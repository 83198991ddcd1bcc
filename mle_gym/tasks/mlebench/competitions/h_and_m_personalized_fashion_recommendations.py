"""H&M Personalized Fashion Recommendations: what does a customer buy in the coming week?"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns, say
from mle_gym.tasks.mlebench.files import copy_files, read_csv, write_csv
from mle_gym.tasks.mlebench.rankings import guesses, mean_average_precision

_PIECE = 2_000_000
"""Purchases that are read at once."""


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """MAP@12 over the customers of the answers; other customers are ignored."""
    require_columns(submission, "customer_id", "prediction")
    if surplus := [str(name) for name in submission.columns if name not in ("customer_id", "prediction")]:
        raise InvalidSubmission(
            f"The submission has the column {surplus[0]!r}; expected customer_id and prediction only."
        )
    mine = submission[submission["customer_id"].isin(answers["customer_id"])].sort_values("customer_id", kind="stable")
    truth = answers.sort_values("customer_id", kind="stable")
    missing = ~truth["customer_id"].isin(mine["customer_id"]).to_numpy()
    if missing.any():
        first = truth["customer_id"].to_numpy()[missing][0]
        raise InvalidSubmission(
            f"Column 'customer_id': {int(missing.sum()):,} of the {len(truth):,} customers in the answers are missing, "
            f"the first is {say(first)}; expected all customers of the sample submission."
        )
    # A customer who stands twice moves the rows after it against the answers, as in MLE-bench.
    ranked = guesses(mine["prediction"].iloc[: len(truth)])
    return mean_average_precision([set(row) for row in guesses(truth["prediction"])], ranked, 12)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out the purchases of the last eight days, the last day and the seven before it.

    The 32 million purchases of the real data are read in pieces.
    """
    purchases = raw / "transactions_train.csv"

    def pieces(**options: Any) -> Iterator[pd.DataFrame]:
        return iter(read_csv(purchases, chunksize=_PIECE, **options))

    last = max(piece["t_dat"].max() for piece in pieces(usecols=["t_dat"]))
    first_day = str((pd.Timestamp(last) - pd.Timedelta(days=7)).date())
    later = []
    for number, piece in enumerate(pieces(dtype={"price": float})):
        held = piece["t_dat"] >= first_day
        later.append(piece.loc[held, ["customer_id", "article_id"]])
        write_csv(piece[~held], public / "transactions_train.csv", mode="a" if number else "w", header=number == 0)
    # Articles are read as numbers, so they lose their leading zero; as in MLE-bench.
    bought = pd.concat(later).astype({"article_id": str}).groupby("customer_id")["article_id"]
    write_csv(bought.agg(" ".join).rename("prediction").reset_index(), private / "answers.csv")
    for name in ("sample_submission.csv", "articles.csv", "customers.csv"):
        copy_files([(raw / name, public / name)])
    shutil.copytree(raw / "images", public / "images")
