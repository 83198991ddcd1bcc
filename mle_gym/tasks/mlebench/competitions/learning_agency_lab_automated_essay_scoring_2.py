"""Learning Agency Lab - Automated Essay Scoring 2.0: how good is a student's essay, from 1 to 6?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.labels import quadratic_kappa, whole_numbers


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Cohen's kappa with quadratic weights."""
    require_columns(submission, "essay_id", "score")
    rows = aligned(submission, answers, "essay_id")
    whole_numbers(submission, "score")
    return quadratic_kappa(answers["score"].to_numpy(), whole_numbers(rows, "score"))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the scored essays."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    write_csv(train, public / "train.csv")
    write_csv(test, private / "answers.csv")
    write_csv(test.drop(columns="score"), public / "test.csv")
    guesses = np.random.RandomState(42).randint(1, 7, size=len(test))
    write_csv(test[["essay_id"]].assign(score=guesses), public / "sample_submission.csv")
