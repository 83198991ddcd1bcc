"""Kuzushiji Recognition: which characters stand where on a page of an old Japanese book?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.boxes import Detections, read_detections
from mle_gym.tasks.mlebench.checks import require_columns, require_rows
from mle_gym.tasks.mlebench.metrics import same_order


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """F1 over all pages of points that lie inside of a character's box and name it."""
    require_rows(submission, len(answers))
    require_columns(submission, "image_id", "labels")
    order, _ = same_order(submission, answers, "image_id")
    found = read_detections(submission["labels"], "labels", "label x y", allow_empty=True)
    truth = read_detections(answers["labels"], "labels", "label x y width height", allow_empty=True)
    hits = sum(_hits(found[at], page) for at, page in zip(order, truth, strict=True))
    offered, wanted = (sum(len(page.labels) for page in pages) for pages in (found, truth))
    return 2 * hits / (offered + wanted) if hits else 0.0


def _hits(found: Detections, truth: Detections) -> int:
    """Boxes that get a point: each takes the first that fits and that no box before it took."""
    labels = np.array(found.labels, dtype=object)
    x, y = found.values.T
    free = np.ones(len(labels), dtype=np.bool_)
    for label, (left, top, width, height) in zip(truth.labels, truth.values, strict=True):
        fits = free & (labels == label) & (left < x) & (x < left + width) & (top < y) & (y < top + height)
        if fits.any():
            free[np.argmax(fits)] = False
    return int((~free).sum())
