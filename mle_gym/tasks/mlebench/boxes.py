"""Detections in one text cell per picture, and COCO's average precision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import say

__all__ = ["Boxes", "Detections", "coco_average_precision", "read_detections"]

_RECALLS = np.linspace(0.0, 1.0, 101)
_LARGEST_AREA = 1e5**2


@dataclass(frozen=True, slots=True)
class Detections:
    """What one cell holds.

    Attributes:
        labels: The label of each detection; empty where labels are numbers.
        values: The other fields in their order, shape ``(detections, fields)``.
    """

    labels: list[str]
    values: NDArray[np.float64]


def read_detections(
    cells: Iterable[object],
    column: str,
    layout: str,
    *,
    separator: str | None = " ",
    allow_empty: bool = False,
    allow_blank: bool = False,
) -> list[Detections]:
    """Read a column whose cells hold any number of detections, each with the same fields.

    Args:
        cells: The cells, in the order of the file.
        column: Its name, for messages.
        layout: Names of the fields, between spaces; the field ``label`` is text, all others are numbers.
        separator: What stands between fields; None for any whitespace.
        allow_empty: Whether an empty cell holds no detection.
        allow_blank: Whether a cell of whitespace holds no detection.

    Raises:
        InvalidSubmission: A cell holds no text, a wrong number of fields, or text where a number belongs.
    """
    fields = layout.split()
    width = len(fields)
    at = fields.index("label") if "label" in fields else None
    none = Detections([], np.zeros((0, width - (at is not None))))

    def read(row: int, cell: object) -> Detections:
        where = f"Column {column!r}, row {row}"
        if not isinstance(cell, str):
            if allow_empty and say(cell) == "an empty cell":
                return none
            raise InvalidSubmission(f"{where}: {say(cell)}; expected {layout!r} for each detection.")
        if allow_blank and not cell.strip():
            return none
        tokens = cell.split(separator)
        if len(tokens) % width:
            spaces = ", with one space between" if separator == " " and "" in tokens else ""
            raise InvalidSubmission(
                f"{where}: {len(tokens)} field{'s' * (len(tokens) > 1)}; expected {layout!r} for each detection, a "
                f"multiple of {width}{spaces}."
            )
        labels = [] if at is None else tokens[at::width]
        if at is not None:
            del tokens[at::width]
        try:
            values = np.array(list(map(float, tokens)))
        except ValueError:
            for token in tokens:
                try:
                    float(token)
                except ValueError:
                    raise InvalidSubmission(
                        f"{where}: {say(token)} is no number; expected {layout!r} for each detection."
                    ) from None
            raise
        return Detections(labels, values.reshape(-1, width - (at is not None)))

    return [read(row, cell) for row, cell in enumerate(cells, start=1)]


@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes of many pictures.

    Attributes:
        image: Number of the picture of each box, shape ``(boxes,)``.
        label: Number of its class, shape ``(boxes,)``.
        box: Left, top, width, height, shape ``(boxes, 4)``.
        area: By which COCO leaves out what is of no interest, shape ``(boxes,)``.
    """

    image: NDArray[np.int64]
    label: NDArray[np.int64]
    box: NDArray[np.float64]
    area: NDArray[np.float64]

    def groups(self) -> dict[tuple[int, int], NDArray[np.intp]]:
        """Return (label, picture) -> its boxes, in their order."""
        order = np.lexsort((np.arange(len(self.image)), self.image, self.label))
        keys = np.stack([self.label[order], self.image[order]], axis=1)
        if not len(keys):
            return {}
        cuts = np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1
        return {
            (int(keys[at, 0]), int(keys[at, 1])): rows
            for at, rows in zip((0, *cuts), np.split(order, cuts), strict=True)
        }


def _match(
    ious: Any, ignored: NDArray[np.bool_], found: NDArray[np.intp], truth: NDArray[np.intp], threshold: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Give each found box, best first, the truth that fits best: (matched, matched to an ignored one)."""
    matched, vain = np.zeros(len(found), dtype=np.bool_), np.zeros(len(found), dtype=np.bool_)
    taken = np.zeros(len(truth), dtype=np.bool_)
    for d in range(len(found)):
        best, at = min(threshold, 1 - 1e-10), -1
        for g in range(len(truth)):
            if taken[g]:
                continue
            if at > -1 and not ignored[at] and ignored[g]:
                break
            if ious[d, g] < best:  # so a NaN fits everything, as in pycocotools
                continue
            best, at = ious[d, g], g
        if at > -1:
            vain[d] = ignored[at]
            # pycocotools marks a match by the other's number, and takes number 0 for none.
            matched[d], taken[at] = truth[at] != 0, found[d] != 0
    return matched, vain


def coco_average_precision(
    truth: Boxes, found: Boxes, scores: NDArray[np.float64], *, iou_threshold: float, max_detections: int = 100
) -> float:
    """Average precision of COCO at one threshold, the mean over the classes of the truth; -1 where there is none.

    It equals ``COCOeval.stats[0]`` of pycocotools for all areas, with its flaw that the number 0 stands for "not
    matched": boxes are numbered from 0 here, in their order. COCOeval itself prints its progress, which nothing but
    a redirection of the whole process could silence.

    Args:
        truth: The boxes that should be found.
        found: The boxes that were found; those of other classes do not count.
        scores: Confidence of each of them, shape ``(boxes,)``.
        iou_threshold: Boxes fit when intersection over union reaches it.
        max_detections: Of one picture and class, only the most confident ones count.
    """
    from pycocotools import mask as overlap

    outside = (truth.area < 0) | (truth.area > _LARGEST_AREA)
    odd = (found.area < 0) | (found.area > _LARGEST_AREA)
    wanted, offered = truth.groups(), found.groups()
    precisions = []
    for label in np.unique(truth.label).tolist():
        parts: list[tuple[NDArray[Any], ...]] = []
        images = sorted({image for each in (wanted, offered) for kind, image in each if kind == label})
        nothing = np.zeros(0, dtype=np.intp)
        total = 0
        for image in images:
            g, d = wanted.get((label, image), nothing), offered.get((label, image), nothing)
            g = g[np.argsort(outside[g], kind="stable")]
            d = d[np.argsort(-scores[d], kind="stable")][:max_detections]
            total += int((~outside[g]).sum())
            if not len(d):
                continue
            ious = overlap.iou(found.box[d], truth.box[g], [0] * len(g)) if len(g) else np.zeros((len(d), 0))
            matched, vain = _match(ious, outside[g], d, g, iou_threshold)
            parts.append((scores[d], matched, vain | (~matched & odd[d])))
        if total:
            precisions.append(_interpolated(parts, total))
    return float(np.mean(precisions)) if precisions else -1.0


def _interpolated(parts: list[tuple[NDArray[Any], ...]], total: int) -> NDArray[np.float64]:
    """Precision at COCO's 101 recalls, each the best at that recall or a higher one."""
    at_recall = np.zeros(len(_RECALLS))
    if not parts:
        return at_recall
    scores, matched, ignored = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(-scores, kind="stable")
    matched, counted = matched[order], ~ignored[order]
    hits, misses = np.cumsum(matched & counted).astype(float), np.cumsum(~matched & counted).astype(float)
    recall, precision = hits / total, hits / (misses + hits + np.spacing(1))
    best = np.maximum.accumulate(precision[::-1])[::-1]
    index = np.searchsorted(recall, _RECALLS, side="left")
    reached = index < len(best)
    at_recall[reached] = best[index[reached]]
    return at_recall
