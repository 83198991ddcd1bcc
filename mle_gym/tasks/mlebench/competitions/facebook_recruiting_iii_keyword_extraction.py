"""Facebook Recruiting III - Keyword Extraction: which tags does a question have?"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import extract, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.multilabel import micro_f1


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """F1 over all pairs of question and tag; tags that no answer has are ignored."""
    return micro_f1(submission, answers, "Id", "Tags")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled questions; the sample submission has their texts in it too."""
    questions = read_csv(extract(raw / "Train.zip", raw) / "Train.csv", dtype={"Id": str, "Tags": str})
    train, test = split_rows(questions, test_size=0.1)
    del questions  # 7 GB
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.drop(columns="Tags"), public / "test.csv")
    write_csv(test.assign(Tags="javascript c# python php java"), public / "sample_submission.csv")
