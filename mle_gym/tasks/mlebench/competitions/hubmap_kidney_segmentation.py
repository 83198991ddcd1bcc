"""HuBMAP - Hacking the Kidney: where are the glomeruli in microscope images of kidneys?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import require_columns
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.rle import dice, read_runs


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean of the images' Dice coefficients."""
    require_columns(submission, "id", "predicted")
    order, _ = same_order(submission, answers, "id")
    pixels = (answers["width_pixels"] * answers["height_pixels"]).to_numpy()
    sizes = np.empty_like(pixels)
    sizes[order] = pixels
    found = read_runs(submission["predicted"], "predicted", sizes.tolist(), allow_empty=True)
    truth = read_runs(answers["encoding"], "encoding", pixels.tolist(), allow_empty=True)
    return float(np.mean([dice(found[at], mask, 1.0) for at, mask in zip(order, truth, strict=True)]))
