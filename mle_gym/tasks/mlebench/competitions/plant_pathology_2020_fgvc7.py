"""Plant Pathology 2020: is an apple leaf healthy, or has it rust, scab or several diseases?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, require_rows
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.probabilities import columns_auc, require_only, scores

STATES = ("healthy", "multiple_diseases", "rust", "scab")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean of the four ROC AUCs."""
    require_rows(submission, len(answers))
    require_only(submission, ["image_id", *STATES])
    scores(submission, STATES)
    values = scores(aligned(submission, answers, "image_id"), STATES)
    return columns_auc(answers[list(STATES)].to_numpy(), values, STATES)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled leaves and number both parts anew."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    for part, kind in ((train, "Train"), (test, "Test")):
        old = part["image_id"].tolist()
        part["image_id"] = [f"{kind}_{number}" for number in range(len(part))]
        copy_files(
            (raw / "images" / f"{name}.jpg", public / "images" / f"{new}.jpg")
            for name, new in zip(old, part["image_id"], strict=True)
        )
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test[["image_id"]], public / "test.csv")
    write_csv(test.assign(**dict.fromkeys(STATES, 0.25)), public / "sample_submission.csv")
