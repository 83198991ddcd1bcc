"""LMSYS Chatbot Arena: which of two answers of chat models did a human prefer?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.probabilities import class_log_loss

OUTCOMES = ("winner_model_a", "winner_model_b", "winner_tie")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Log loss over the three outcomes."""
    return class_log_loss(submission, answers, "id", OUTCOMES, digits=6)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the battles."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    write_csv(train, public / "train.csv")
    write_csv(test, private / "answers.csv")
    write_csv(test[["id", "prompt", "response_a", "response_b"]], public / "test.csv")
    write_csv(test[["id"]].assign(**dict.fromkeys(OUTCOMES, 0.3333333333333333)), public / "sample_submission.csv")
