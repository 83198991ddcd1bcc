"""APTOS 2019 Blindness Detection: how severe is the diabetic retinopathy that a photo of the retina shows?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.labels import quadratic_kappa, whole_numbers


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Cohen's kappa with quadratic weights."""
    require_columns(submission, "id_code", "diagnosis")
    grades = whole_numbers(submission, "diagnosis")
    rows = aligned(submission.assign(diagnosis=grades), answers, "id_code")
    return quadratic_kappa(answers["diagnosis"].to_numpy(), rows["diagnosis"].to_numpy())


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled photos."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    for name, part in (("train", train), ("test", test)):
        copy_files(
            (raw / "train_images" / f"{code}.png", public / f"{name}_images" / f"{code}.png")
            for code in part["id_code"]
        )
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test[["id_code"]], public / "test.csv")
    write_csv(test[["id_code"]].assign(diagnosis=0), public / "sample_submission.csv")
