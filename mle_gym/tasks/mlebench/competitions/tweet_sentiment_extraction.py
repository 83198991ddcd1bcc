"""Tweet Sentiment Extraction: which words of a tweet carry its sentiment?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.text import as_text, word_overlap


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean Jaccard index of the words; not defined for an empty guess at an empty answer."""
    require_columns(submission, "textID", "selected_text")
    found, expected = same_order(submission, answers, "textID")
    cells, truth = as_text(submission["selected_text"], ""), as_text(answers["selected_text"], "")
    overlap = word_overlap([cells[row] for row in found], [truth[row] for row in expected])
    if np.isnan(overlap).any():
        row = int(found[np.isnan(overlap)].min())
        raise InvalidSubmission(
            f"Column 'selected_text', row {row + 1}: {say(submission['selected_text'].iloc[row])}; "
            "expected a word, as the metric is not defined where neither side has one."
        )
    return float(overlap.mean())


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled tweets."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="selected_text"), public / "test.csv")
    write_csv(test[["textID"]].assign(selected_text=""), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
