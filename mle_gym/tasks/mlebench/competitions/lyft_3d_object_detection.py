"""Lyft 3D Object Detection for Autonomous Vehicles: which objects stand where around a car?"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.boxes import Detections, read_detections
from mle_gym.tasks.mlebench.checks import require_columns, require_rows, say
from mle_gym.tasks.mlebench.metrics import same_order

_LAYOUT = "confidence center_x center_y center_z width length height yaw label"
_THRESHOLDS = np.array([0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean over samples and IoU thresholds of the mean average precision over the sample's classes."""
    require_rows(submission, len(answers))
    require_columns(submission, "Id", "PredictionString")
    order, _ = same_order(submission, answers, "Id")
    cells = read_detections(
        submission["PredictionString"], "PredictionString", _LAYOUT, allow_empty=True, allow_blank=True
    )
    truth = read_detections(answers["PredictionString"], "PredictionString", _LAYOUT)
    wanted: list[set[str]] = [set()] * len(cells)
    for at, sample in zip(order, truth, strict=True):
        wanted[at] = set(sample.labels)
    for row, (cell, labels) in enumerate(zip(cells, wanted, strict=True), start=1):
        _require_boxes(row, cell, labels)
    return float(np.mean([_sample_score(cells[at], sample) for at, sample in zip(order, truth, strict=True)]))


def _require_boxes(row: int, cell: Detections, labels: set[str]) -> None:
    """Require boxes that have a volume and a place, of the classes that count for this sample."""
    counted = np.array([label in labels for label in cell.labels], dtype=np.bool_)
    values = cell.values[counted]
    where = f"Column 'PredictionString', row {row}"
    names = _LAYOUT.split()
    # A box without end upwards overlaps nothing, but MLE-bench takes it.
    endless = np.isinf(values[:, 1:]) & ~np.isin(names[1:], ["center_z", "height"])
    for bad, expected in (
        (np.isnan(values[:, 1:]) | endless, "a finite number"),
        (values[:, 1:] <= [-np.inf] * 3 + [0.0] * 3 + [-np.inf], "a positive number"),
    ):
        if bad.any():
            box, field = np.argwhere(bad)[0]
            raise InvalidSubmission(
                f"{where}: {say(values[box, field + 1])} as the {names[field + 1]} of a box; expected {expected}."
            )
    corners = _corners(values)
    skew = np.zeros(len(values), dtype=np.bool_)
    for corner, before, after in ((0, 1, 3), (1, 0, 2), (2, 1, 3), (3, 0, 2)):
        sides = (corners[:, before] - corners[:, corner]) * (corners[:, after] - corners[:, corner])
        skew |= ~np.isclose(sides.sum(axis=1), 0.0)
    if skew.any():
        raise InvalidSubmission(
            f"{where}: a box with {names[1]} {say(values[np.flatnonzero(skew)[0], 1])} is too far away or too large for "
            "its corners to be right angles; expected metres."
        )


def _corners(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Corners of the boxes seen from above, shape (boxes, 4, 2)."""
    x, y, _, width, length, _, yaw = values[:, 1:].T
    half, turn = np.cos(yaw / 2), np.sin(yaw / 2)
    cos, sin = half * half - turn * turn, 2 * half * turn
    along, across = np.array([1, 1, -1, -1]), np.array([1, -1, -1, 1])
    ahead, aside = np.multiply.outer(length / 2, along), np.multiply.outer(width / 2, across)
    cos, sin, x, y = (part[:, None] for part in (cos, sin, x, y))
    return np.stack([x + ahead * cos + aside * sin, y + ahead * sin - aside * cos], axis=2)


def _ious(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Intersection over union of the volumes of boxes, shape (first, second)."""
    import shapely

    bottom, top = ([part[:, 3] + sign * part[:, 6] / 2 for part in (first, second)] for sign in (-1, 1))
    height = np.fmax(0.0, np.minimum.outer(top[0], top[1]) - np.maximum.outer(bottom[0], bottom[1]))
    reach = [np.hypot(part[:, 4], part[:, 5]) / 2 for part in (first, second)]
    apart = np.hypot(np.subtract.outer(first[:, 1], second[:, 1]), np.subtract.outer(first[:, 2], second[:, 2]))
    near = (apart <= np.add.outer(reach[0], reach[1]) * (1 + 1e-9)) & (height > 0)
    one, other = np.nonzero(near)
    ground = [shapely.polygons(_corners(part)) for part in (first, second)]
    both = np.zeros(near.shape)
    both[one, other] = height[one, other] * shapely.area(shapely.intersection(ground[0][one], ground[1][other]))
    volumes = [part[:, 4:7].prod(axis=1) for part in (first, second)]
    return np.clip(both / (np.add.outer(volumes[0], volumes[1]) - both), 0.0, 1.0)


def _sample_score(found: Detections, truth: Detections) -> float:
    """Mean over thresholds and classes of one sample."""
    classes = sorted(set(truth.labels))
    return float(np.mean([_class_score(*(_of(part, label) for part in (found, truth))) for label in classes]))


def _of(cell: Detections, label: str) -> NDArray[np.float64]:
    boxes = cell.values[[name == label for name in cell.labels]]
    return boxes[sorted(range(len(boxes)), key=boxes[:, 0].tolist().__getitem__, reverse=True)]


def _class_score(found: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Mean over thresholds of the average precision of boxes, most confident first.

    A box only ever matches the true box that it overlaps most; where another has taken that one, it is wrong.
    """
    if not len(found):
        return 0.0
    ious = _ious(found, truth)
    nearest, best = ious.argmax(axis=1), ious.max(axis=1)
    hits = best[:, None] > _THRESHOLDS
    for threshold in range(len(_THRESHOLDS)):
        rows = np.flatnonzero(hits[:, threshold])
        _, first = np.unique(nearest[rows], return_index=True)
        hits[:, threshold] = False
        hits[rows[first], threshold] = True
    right = np.cumsum(hits, axis=0)
    precision = right / np.arange(1, len(found) + 1)[:, None]
    envelope = np.maximum.accumulate(precision[::-1], axis=0)[::-1]
    return float(np.mean((envelope * hits).sum(axis=0) / len(truth)))
