"""Google Research - Identify Contrails: which pixels of a satellite image are an aircraft's contrail?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import require_columns
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.rle import read_runs


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Dice coefficient over the pixels of all images together; nan where nothing is set at all."""
    require_columns(submission, "record_id", "encoded_pixels")
    order, _ = same_order(submission, answers, "record_id")
    pixels = (answers["height"] * answers["width"]).to_numpy()
    sizes = np.empty_like(pixels)
    sizes[order] = pixels
    found = read_runs(submission["encoded_pixels"], "encoded_pixels", sizes.tolist(), none="-")
    truth = read_runs(answers["encoded_pixels"], "encoded_pixels", pixels.tolist(), none="-")
    both = sum(found[at].overlap(mask) for at, mask in zip(order, truth, strict=True))
    total = sum(mask.area for mask in (*found, *truth))
    return 2 * both / total if total else float("nan")
