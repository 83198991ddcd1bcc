"""Herbarium 2020: of which of 32,000 species is the dried plant on a herbarium sheet?"""

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
    folder = Path("nybg2020") / "train"
    prepare_herbarium(raw / folder, public / folder, public, private, encoding="latin-1")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Striped sheets; the species decides colour and stripes."""
    region = ("regions", "region_id", [{"id": number, "name": f"Region {number}"} for number in range(1, 5)])
    write_herbarium(raw / "nybg2020" / "train", rng, size, 2020, 32_000, region, encoding="latin-1")
