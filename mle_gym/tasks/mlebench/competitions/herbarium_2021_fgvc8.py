"""Herbarium 2021: of which of 64,500 species is the dried plant on a herbarium sheet?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.per_category import herbarium_score, prepare_herbarium, write_herbarium


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean F1 over species."""
    return herbarium_score(submission, answers)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 20 % of each species."""
    prepare_herbarium(raw / "train", public / "train", public, private)


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Striped sheets; the species decides colour and stripes."""
    keeper = ("institutions", "institution_id", [{"id": number, "name": f"Garden {number}"} for number in range(5)])
    write_herbarium(raw / "train", rng, size, 2021, 64_500, keeper)
