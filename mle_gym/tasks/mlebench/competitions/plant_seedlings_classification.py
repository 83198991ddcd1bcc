"""Plant Seedlings Classification: of which of twelve species is the seedling in a photo?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, require_columns, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id
from mle_gym.tasks.mlebench.pictures import class_looks, class_photo, mixed_up

_SPECIES = (
    "Black-grass",
    "Charlock",
    "Cleavers",
    "Common Chickweed",
    "Common wheat",
    "Fat Hen",
    "Loose Silky-bent",
    "Maize",
    "Scentless Mayweed",
    "Shepherds Purse",
    "Small-flowered Cranesbill",
    "Sugar beet",
)


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
        (photo.name, folder.name) for folder in sorted((raw / "train").iterdir()) for photo in sorted(folder.iterdir())
    ]
    train, test = split_rows(pd.DataFrame(photos, columns=["file", "species"]), test_size=0.14)
    for file, species in train.itertuples(index=False):
        copy_files([(raw / "train" / species / file, public / "train" / species / file)])
    for file, species in test.itertuples(index=False):
        copy_files([(raw / "train" / species / file, public / "test" / file)])
    write_csv(test, private / "answers.csv")
    write_csv(test.assign(species="Sugar beet"), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Striped squares; the species decides colour and stripes."""
    rows = {"tiny": 220, "small": 1500}[size]
    species = rng.integers(0, len(_SPECIES), rows)
    looks = class_looks(rng, len(_SPECIES))
    for label, shown in zip(species, mixed_up(rng, species, len(_SPECIES), 0.08), strict=True):
        path = raw / "train" / _SPECIES[label] / f"{hex_id(rng, 9)}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(class_photo(rng, looks[shown], 28, "PNG"))
