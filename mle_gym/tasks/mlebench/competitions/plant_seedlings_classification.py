"""Plant Seedlings Classification: of which of twelve species is the seedling in a photo?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, require_columns, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, split_rows, write_csv


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Micro-averaged F1, which is the share of right rows; an empty cell is a wrong one."""
    require_columns(submission, "file", "species")
    rows = aligned(submission, answers, "file")
    if not any(isinstance(cell, str) for cell in submission["species"]):
        found = say(submission["species"].iloc[0])
        raise InvalidSubmission(f"Column 'species', row 1: {found}; expected the name of a species.")
    return float(np.mean(rows["species"].to_numpy(dtype=object) == answers["species"].to_numpy(dtype=object)))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 14 % of the photos, which lie in one folder per species."""
    photos = [
        (photo.name, folder.name)
        for folder in sorted((raw / "train").iterdir())
        for photo in sorted(folder.iterdir())
    ]
    train, test = split_rows(pd.DataFrame(photos, columns=["file", "species"]), test_size=0.14)
    for file, species in train.itertuples(index=False):
        copy_files([(raw / "train" / species / file, public / "train" / species / file)])
    for file, species in test.itertuples(index=False):
        copy_files([(raw / "train" / species / file, public / "test" / file)])
    write_csv(test, private / "answers.csv")
    write_csv(test.assign(species="Sugar beet"), public / "sample_submission.csv")
