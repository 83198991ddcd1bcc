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
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id, image_bytes
from mle_gym.tasks.mlebench.metrics import same_order

_LAYOUT = "confidence center_x center_y center_z width length height yaw label"
_THRESHOLDS = np.array([0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95])

_TABLES = (
    *("attribute", "calibrated_sensor", "category", "ego_pose", "instance", "log", "map", "sample"),
    *("sample_annotation", "sample_data", "scene", "sensor", "visibility"),
)
_KINDS = {"car": (1.9, 4.7, 1.7), "pedestrian": (0.8, 0.8, 1.8), "bus": (2.9, 12.0, 3.4)}
"""Width, length and height of what stand-ins show, in metres."""


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
    ious: NDArray[np.float64] = np.clip(both / (np.add.outer(volumes[0], volumes[1]) - both), 0.0, 1.0)
    return ious


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


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Drives past a few objects; lidar points lie on their sides and on the ground, cameras show blocks."""
    drives, moments = {"tiny": (15, 9), "small": (30, 12)}[size]
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in _TABLES}
    for folder in ("train_data", "train_images", "train_lidar", "train_maps"):
        (raw / folder).mkdir()
    kinds = {name: hex_id(rng, 64) for name in _KINDS}
    tables["category"] = [{"token": token, "name": name, "description": ""} for name, token in kinds.items()]
    names = ("object_action_parked", "object_action_driving_straight_forward")
    tables["attribute"] = [{"token": hex_id(rng, 64), "name": name, "description": ""} for name in names]
    shares = {"1": "0-40%", "2": "40-60%", "3": "60-80%", "4": "80-100%"}
    tables["visibility"] = [{"token": level, "level": level, "description": share} for level, share in shares.items()]
    for channel, modality in (("LIDAR_TOP", "lidar"), ("CAM_FRONT", "camera"), ("CAM_BACK", "camera")):
        tables["sensor"].append({"token": hex_id(rng, 64), "channel": channel, "modality": modality})
    rows = [row for _ in range(drives) for row in _drive(raw, rng, tables, kinds, moments)]
    tokens = [log["token"] for log in tables["log"]]
    about = {"category": "semantic_prior", "filename": "maps/map_raster_palo_alto.png", "token": hex_id(rng)}
    tables["map"] = [{"log_tokens": tokens, **about}]
    for name, table in tables.items():
        (raw / "train_data" / f"{name}.json").write_text(json.dumps(table))
    streets = np.where(np.indices((64, 64)).min(axis=0) % 16 < 3, 220, 30)
    (raw / "train_maps" / "map_raster_palo_alto.png").write_bytes(image_bytes(streets))
    write_csv(pd.DataFrame(rows, columns=["Id", "PredictionString"]), raw / "train.csv")


def _drive(
    raw: Path, rng: np.random.Generator, tables: dict[str, list[dict[str, Any]]], kinds: dict[str, str], moments: int
) -> list[tuple[str, str]]:
    """Add one drive to the tables and write its files; return its rows of the training table."""
    host, log = f"a{len(tables['log']):03}", hex_id(rng, 64)
    start = 1_233_689_008_717_605 + 60_000_000 * len(tables["log"])
    about = {"date_captured": "2019-02-01", "location": "Palo Alto", "vehicle": host, "logfile": ""}
    tables["log"].append({"token": log, **about})
    samples = [hex_id(rng, 64) for _ in range(moments)]
    ends = {"first_sample_token": samples[0], "last_sample_token": samples[-1], "nbr_samples": moments}
    tables["scene"].append({"token": log, "log_token": log, "name": f"host-{host}", "description": "", **ends})
    mounts: list[tuple[str, int, str]] = []
    for sensor in tables["sensor"]:
        lidar, back = sensor["modality"] == "lidar", sensor["channel"] == "CAM_BACK"
        turn = [1, 0, 0, 0] if lidar else [0.5, 0.5, -0.5, -0.5] if back else [0.5, -0.5, 0.5, -0.5]
        lens = [] if lidar else [[40, 0, 32], [0, 40, 18], [0, 0, 1]]
        mount = {"token": hex_id(rng, 64), "sensor_token": sensor["token"], "translation": [0.0, 0.0, 1.8]}
        tables["calibrated_sensor"].append({**mount, "rotation": turn, "camera_intrinsic": lens})
        mounts.append((str(mount["token"]), -1 if back else 1, "lidar1" if lidar else f"cam{len(mounts)}"))
    heading = rng.uniform(-np.pi, np.pi)
    ahead = np.array([np.cos(heading), np.sin(heading)])
    frame = np.stack([ahead, [-ahead[1], ahead[0]]])
    car = np.array([*rng.uniform(900, 1600, 2), -20.0])
    things = []
    for name in rng.choice(list(_KINDS), int(rng.integers(2, 6)), p=[0.7, 0.2, 0.1]):
        spot = car[:2] + rng.uniform((-25, 3), (25, 12)) * (1, rng.choice([-1, 1])) @ frame
        speed = rng.choice([0.0, 0.5, 1.0]) * (name != "pedestrian") + 0.1
        volume = np.array(_KINDS[name]) * rng.uniform(0.9, 1.1, 3)
        yaw = heading + rng.choice([0, np.pi]) + rng.normal(0, 0.1)
        things.append([hex_id(rng, 64), str(name), spot, speed, volume, yaw, []])
    rows = []
    for moment, sample in enumerate(samples):
        time = start + 200_000 * moment
        links = {"prev": samples[moment - 1] if moment else "", "next": [*samples, ""][moment + 1]}
        tables["sample"].append({"token": sample, "scene_token": log, "timestamp": float(time), **links})
        car[:2] += ahead * 0.8
        boxes = []
        for thing in things:
            token, name, spot, speed, volume, yaw, seen = thing
            thing[2] = spot = spot + speed * np.array([np.cos(yaw), np.sin(yaw)]) * 0.2
            boxes.append((name, np.array([*spot, car[2] + volume[2] / 2]), volume, yaw))
            seen.append(hex_id(rng, 64))
            note = {"token": seen[-1], "sample_token": sample, "instance_token": token, "attribute_tokens": []}
            where = {"translation": boxes[-1][1].tolist(), "size": volume.tolist(), "rotation": _quaternion(yaw)}
            counts = {"num_lidar_pts": -1, "num_radar_pts": 0, "visibility_token": "4"}
            tables["sample_annotation"].append({**note, **where, **counts, "prev": ["", *seen][-2], "next": ""})
        fields = ((*map(float, middle), *map(float, volume), float(yaw), name) for name, middle, volume, yaw in boxes)
        rows.append((sample, " ".join(str(field) for box in fields for field in box)))
        for sensor_token, facing, device in mounts:
            lidar = device == "lidar1"
            picture = {"width": None, "height": None} if lidar else {"width": 64, "height": 36}
            name = f"host-{host}_{device}_{time}.{'bin' if lidar else 'jpeg'}"
            seen_by = _points(rng, car, frame, boxes) if lidar else _photo(rng, car, frame * facing, boxes)
            (raw / ("train_lidar" if lidar else "train_images") / name).write_bytes(seen_by)
            pose = {"token": hex_id(rng, 64), "timestamp": float(time), "translation": car.tolist()}
            tables["ego_pose"].append({**pose, "rotation": _quaternion(heading)})
            data: dict[str, Any] = {
                "token": hex_id(rng, 64),
                "sample_token": sample,
                "calibrated_sensor_token": sensor_token,
            }
            data |= {"ego_pose_token": pose["token"], "timestamp": float(time), "is_key_frame": True}
            data |= {"filename": f"{'lidar' if lidar else 'images'}/{name}", "fileformat": "bin" if lidar else "jpeg"}
            tables["sample_data"].append({**data, **picture, "prev": "", "next": ""})
    for token, name, *_, seen in things:
        ends = {"first_annotation_token": seen[0], "last_annotation_token": seen[-1], "nbr_annotations": len(seen)}
        tables["instance"].append({"token": token, "category_token": kinds[name], **ends})
    return rows


def _quaternion(yaw: float) -> list[float]:
    return [float(np.cos(yaw / 2)), 0.0, 0.0, float(np.sin(yaw / 2))]


_Box = tuple[str, NDArray[np.float64], NDArray[np.float64], float]


def _points(rng: np.random.Generator, car: NDArray[np.float64], frame: NDArray[np.float64], boxes: list[_Box]) -> bytes:
    """Lidar points in the sensor's frame, 1.8 m above the ground: x, y, z, intensity, ring as 32-bit floats."""
    ground = np.column_stack([rng.uniform(-30, 30, (250, 2)), np.zeros(250)])
    clouds = [ground]
    for _, middle, volume, yaw in boxes:
        cube = rng.uniform(-0.5, 0.5, (60, 3))
        side = np.arange(60)
        cube[side, side % 3] = np.sign(cube[side, side % 3]) * 0.5
        width, length, height = volume
        body = cube * (length, width, height)
        turn = np.array([[np.cos(yaw), np.sin(yaw)], [-np.sin(yaw), np.cos(yaw)]])
        across = (body[:, :2] @ turn + middle[:2] - car[:2]) @ frame.T
        clouds.append(np.column_stack([across, body[:, 2] + height / 2]))
    points = np.concatenate(clouds) + rng.normal(0, 0.03, (sum(map(len, clouds)), 3)) - (0, 0, 1.8)
    rest = np.column_stack([rng.uniform(0, 100, len(points)), rng.integers(0, 40, len(points))])
    return np.column_stack([points, rest]).astype("<f4").tobytes()


def _photo(rng: np.random.Generator, car: NDArray[np.float64], frame: NDArray[np.float64], boxes: list[_Box]) -> bytes:
    """What a camera sees that looks along the first row of ``frame``: blocks whose colour tells the class."""
    pixels = np.full((36, 64, 3), 150.0)
    pixels[18:] = 90
    for name, middle, volume, _ in sorted(boxes, key=lambda box: -np.linalg.norm(box[1] - car)):
        depth, left = frame @ (middle - car)[:2]
        if depth > 2:
            scale, x = 40 / depth, 32 - 40 * left / depth
            top, low = 18 + scale * (1.8 - volume[2]), 18 + scale * 1.8
            rows = slice(*np.clip([top, low], 0, 36).astype(int))
            columns = slice(*np.clip([x - scale * volume[0] / 2, x + scale * volume[0] / 2], 0, 64).astype(int))
            pixels[rows, columns] = {"car": (40, 60, 160), "pedestrian": (190, 60, 50), "bus": (220, 190, 40)}[name]
    return image_bytes(pixels + rng.normal(0, 8, pixels.shape), "JPEG", quality=75)
