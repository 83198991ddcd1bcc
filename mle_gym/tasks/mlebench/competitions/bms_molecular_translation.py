"""Bristol-Myers Squibb - Molecular Translation: which molecule does a drawing show?"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.text import mean_text_distance


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean Levenshtein distance in characters."""
    return mean_text_distance(submission, answers, "image_id", "InChI")


def _place(image: str) -> str:
    """Path of a picture below its folder."""
    return f"{image[0]}/{image[1]}/{image[2]}/{image}.png"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 20 % of the labelled pictures."""
    train, test = split_rows(read_csv(raw / "train_labels.csv"), test_size=0.2)
    for name, rows in (("train", train), ("test", test)):
        places = map(_place, rows["image_id"])
        copy_files((raw / "train" / place, public / name / place) for place in places)
    write_csv(train, public / "train_labels.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.assign(InChI="InChI=1S/H2O/h1H2"), public / "sample_submission.csv")
    copy_files([(raw / "extra_approved_InChIs.csv", public / "extra_approved_InChIs.csv")])
