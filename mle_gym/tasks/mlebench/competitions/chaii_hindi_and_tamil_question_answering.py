"""chaii - Hindi and Tamil Question Answering: which words of a text answer a question?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import require_columns, text_cells
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.text import as_text, word_overlap


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean Jaccard index of the words; 0 for an empty guess at an empty answer."""
    require_columns(submission, "id", "PredictionString")
    found, expected = same_order(submission, answers, "id")
    cells, truth = text_cells(submission, "PredictionString", empty=True), as_text(answers["PredictionString"], "")
    overlap = word_overlap([cells[row] for row in found], [truth[row] for row in expected])
    return float(np.nan_to_num(overlap).mean())


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled questions."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns=["answer_start", "answer_text"]), public / "test.csv")
    answers = test[["id", "answer_text"]].rename(columns={"answer_text": "PredictionString"})
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(PredictionString="dummy text"), public / "sample_submission.csv")
