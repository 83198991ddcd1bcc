"""Average precision against pycocotools, and cells of detections."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.boxes import Boxes, coco_average_precision, read_detections


def _pycocotools(truth: Boxes, found: Boxes, scores: NDArray[np.float64]) -> float:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    def boxes(these: Boxes, confidence: NDArray[np.float64] | None = None) -> list[dict[str, object]]:
        columns = zip(these.image.tolist(), these.label.tolist(), these.box, these.area.tolist(), strict=True)
        rows: list[dict[str, object]] = [
            {"id": number, "image_id": image, "category_id": label, "bbox": box, "area": area, "iscrowd": 0}
            for number, (image, label, box, area) in enumerate(columns)
        ]
        if confidence is not None:
            for row, score in zip(rows, confidence.tolist(), strict=True):
                row["score"] = score
        return rows

    about = {
        "images": [{"id": int(image)} for image in np.unique(truth.image)],
        "categories": [{"id": int(label)} for label in np.unique(truth.label)],
    }
    with contextlib.redirect_stdout(io.StringIO()):
        sides = COCO(), COCO()
        for side, rows in zip(sides, (boxes(truth), boxes(found, scores)), strict=True):
            side.dataset = {**about, "annotations": rows}
            side.createIndex()
        evaluation = COCOeval(*sides, "bbox")
        evaluation.params.iouThrs = np.array([0.4])
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return float(evaluation.stats[0])


def _boxes(rng: np.random.Generator, count: int, images: NDArray[np.int64], scale: float) -> Boxes:
    box = rng.uniform(0, 30, (count, 4)).round(1)
    return Boxes(images, rng.integers(0, 3, count), box, (box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1]) * scale)


@pytest.mark.parametrize("seed", range(40))
def test_same_as_pycocotools(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Some true boxes are too large or have a negative area, which COCO leaves out.
    truth = _boxes(rng, 20, np.sort(rng.integers(0, 4, 20)), 1.0 if seed % 3 else 1e8)
    count = 400 if seed % 8 == 0 else 40
    near = rng.integers(0, 20, count)
    found = _boxes(rng, count, truth.image[near], 1.0)
    close = rng.random(count) < 0.6
    found.box[close] = truth.box[near[close]] + rng.normal(0, 1, (int(close.sum()), 4)).round(1)
    if seed % 5 == 0:
        found.box[rng.random(count) < 0.1, 0] = np.nan
    scores = rng.random(count).round(2)
    expected = _pycocotools(truth, found, scores)
    assert coco_average_precision(truth, found, scores, iou_threshold=0.4) == pytest.approx(expected, abs=1e-12)


def test_box_number_zero_is_never_found() -> None:
    box = np.array([[0.0, 0.0, 4.0, 4.0]])
    one = Boxes(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), box, np.array([16.0]))
    assert coco_average_precision(one, one, np.ones(1), iou_threshold=0.4) == 0.0


def test_cells() -> None:
    cells = read_detections(
        ["a 1 2 b 3 4", float("nan"), " "], "boxes", "label x y", allow_empty=True, allow_blank=True
    )
    assert cells[0].labels == ["a", "b"]
    assert cells[0].values.tolist() == [[1, 2], [3, 4]]
    assert not cells[1].labels
    assert cells[2].values.shape == (0, 2)
    numbers = read_detections(["1 2\t3 nan"], "boxes", "class x", separator=None)
    assert numbers[0].values[:, 0].tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("a 1", "2 fields; expected 'label x y' for each detection, a multiple of 3."),
        ("a  1 2", "4 fields; .* a multiple of 3, with one space between."),
        ("a 1 z", "'z' is no number"),
        (float("nan"), "an empty cell"),
        (7, "'7'; expected 'label x y'"),
    ],
)
def test_refusals(cell: object, reason: str) -> None:
    with pytest.raises(InvalidSubmission, match=f"Column 'boxes', row 2: {reason}"):
        read_detections(["a 1 2", cell], "boxes", "label x y")
