"""Lyft 3D Object Detection for Autonomous Vehicles: which objects stand where around a car?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.boxes import Detections, read_detections
from mle_gym.tasks.mlebench.checks import require_columns, require_rows, say
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
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


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a fifth of the drives (logs), with all that was seen on them."""

    def read(table: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads((raw / "train_data" / f"{table}.json").read_text())
        return rows

    def write(rows: list[dict[str, Any]], part: str, table: str) -> None:
        path = public / f"{part}_data" / f"{table}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(rows))

    logs, samples, seen = read("log"), read("sample"), read("sample_data")
    places, sensors = ({row["token"]: row for row in read(table)} for table in ("ego_pose", "calibrated_sensor"))
    boxes = read_csv(raw / "train.csv")
    drives = dict(zip(("train", "test"), split_rows([log["token"] for log in logs], test_size=0.2), strict=True))
    for part, chosen in ((part, set(tokens)) for part, tokens in drives.items()):
        tokens = {sample["token"] for sample in samples if sample["scene_token"] in chosen}
        frames = [frame for frame in seen if frame["sample_token"] in tokens]
        write([log for log in logs if log["token"] in chosen], part, "log")
        write([scene for scene in read("scene") if scene["log_token"] in chosen], part, "scene")
        write([sample for sample in samples if sample["token"] in tokens], part, "sample")
        write(frames, part, "sample_data")
        write([places[frame["ego_pose_token"]] for frame in frames], part, "ego_pose")
        used = dict.fromkeys(frame["calibrated_sensor_token"] for frame in frames)
        write([sensors[token] for token in used], part, "calibrated_sensor")
        # MLE-bench lists the drives of the test part in both.
        write([dict(read("map")[0], log_tokens=drives["test"])], part, "map")
        same = [f"{table}.json" for table in ("attribute", "category", "sensor", "visibility")]
        copy_files((raw / "train_data" / name, public / f"{part}_data" / name) for name in same)
        picture = "map_raster_palo_alto.png"
        copy_files([(raw / "train_maps" / picture, public / f"{part}_maps" / picture)])
        for kind, folder in (("jpeg", "images"), ("bin", "lidar")):
            names = {Path(frame["filename"]).name for frame in frames if frame["fileformat"] == kind}
            copy_files((raw / f"train_{folder}" / name, public / f"{part}_{folder}" / name) for name in names)
        mine = boxes[boxes["Id"].isin(tokens)]
        if part == "train":
            annotations = [row for row in read("sample_annotation") if row["sample_token"] in tokens]
            things = {row["instance_token"] for row in annotations}
            write(annotations, part, "sample_annotation")
            write([thing for thing in read("instance") if thing["token"] in things], part, "instance")
            write_csv(mine, public / "train.csv")
            continue
        sure = mine["PredictionString"].map(lambda text: " ".join(_with_confidence(text.split(" "))))
        write_csv(mine.assign(PredictionString=sure), private / "test.csv")
        write_csv(mine.assign(PredictionString=""), public / "sample_submission.csv")


def _with_confidence(fields: list[str]) -> list[str]:
    """Put a confidence before the eight fields of each box."""
    return [field for at in range(0, len(fields), 8) for field in ("1.0", *fields[at : at + 8])]


def _require_boxes(row: int, cell: Detections, labels: set[str]) -> None:
    """Require boxes that have a volume and a place, of the classes that count for this sample."""
    counted = np.array([label in labels for label in cell.labels], dtype=np.bool_)
    values = cell.values[counted]
    where = f"Column 'PredictionString', row {row}"
    names = _LAYOUT.split()[1:-1]
    # A box without end upwards overlaps nothing, but MLE-bench takes it.
    endless = np.isinf(values[:, 1:]) & ~np.isin(names, ["center_z", "height"])
    for bad, expected in (
        (np.isnan(values[:, 1:]) | endless, "a finite number"),
        (values[:, 1:] <= [-np.inf] * 3 + [0.0] * 3 + [-np.inf], "a positive number"),
    ):
        if bad.any():
            box, field = np.argwhere(bad)[0]
            raise InvalidSubmission(
                f"{where}: {say(values[box, field + 1])} as the {names[field]} of a box; expected {expected}."
            )
    corners = _corners(values)
    skew = np.zeros(len(values), dtype=np.bool_)
    for corner, before, after in ((0, 1, 3), (1, 0, 2), (2, 1, 3), (3, 0, 2)):
        sides = (corners[:, before] - corners[:, corner]) * (corners[:, after] - corners[:, corner])
        skew |= ~np.isclose(sides.sum(axis=1), 0.0)
    if skew.any():
        raise InvalidSubmission(
            f"{where}: a box with {names[0]} {say(values[skew, 1][0])} is too far away or too large for its "
            "corners to be right angles; expected metres."
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
