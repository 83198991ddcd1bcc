"""VinBigData Chest X-ray Abnormalities Detection: which of 14 findings does a chest X-ray show, and where?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.boxes import Boxes, coco_average_precision, read_detections
from mle_gym.tasks.mlebench.checks import require_columns, require_same_ids, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import dicom_bytes, ellipse, hex_id, split_labels

_CORNERS = ["x_min", "y_min", "x_max", "y_max"]
_FINDINGS = (
    "Aortic enlargement",
    "Atelectasis",
    "Calcification",
    "Cardiomegaly",
    "Consolidation",
    "ILD",
    "Infiltration",
    "Lung Opacity",
    "Nodule/Mass",
    "Other lesion",
    "Pleural effusion",
    "Pleural thickening",
    "Pneumothorax",
    "Pulmonary fibrosis",
)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """COCO's average precision at an IoU of 0.4; MLE-bench hands the corners over as corner, width and height."""
    require_columns(submission, "image_id", "PredictionString")
    require_same_ids(submission, answers, "image_id")
    cells = read_detections(
        submission["PredictionString"], "PredictionString", "class_id confidence x_min y_min x_max y_max"
    )
    for row, cell in enumerate(cells, start=1):
        if not np.isfinite(cell.values[:, 0]).all():
            odd = cell.values[~np.isfinite(cell.values[:, 0]), 0][0]
            raise InvalidSubmission(
                f"Column 'PredictionString', row {row}: {say(odd)} as a class; expected a number from 0 to 14."
            )
    image = {name: number for number, name in enumerate(answers["image_id"].unique())}
    true_image = answers["image_id"].map(image).to_numpy(dtype=np.int64)
    # COCO numbers the boxes of the answers picture by picture.
    order = np.argsort(true_image, kind="stable")
    corners = answers[_CORNERS].to_numpy(dtype=np.float64)[order]
    truth = Boxes(true_image[order], answers["class_id"].to_numpy(dtype=np.int64)[order], corners, _area(corners))
    values = np.concatenate([cell.values for cell in cells])
    images = np.repeat([image[name] for name in submission["image_id"]], [len(cell.values) for cell in cells])
    # Classes beyond the answers' do not count, whatever they are.
    labels = np.trunc(values[:, 0]).clip(-(2.0**53), 2.0**53).astype(np.int64)
    found = Boxes(images.astype(np.int64), labels, values[:, 2:], _area(values[:, 2:]))
    return coco_average_precision(truth, found, values[:, 1], iou_threshold=0.4)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the images; the first box of each image and class stands for the radiologists' consensus."""
    boxes = read_csv(raw / "train.csv")
    train, test = split_rows(np.array(boxes["image_id"].unique()), test_size=0.1)
    for name, part in (("train", train), ("test", test)):
        copy_files((raw / "train" / f"{image}.dicom", public / name / f"{image}.dicom") for image in part)
    write_csv(boxes[boxes["image_id"].isin(train)], public / "train.csv")
    sample = pd.DataFrame({"image_id": test, "PredictionString": "14 1 0 0 1 1"})
    write_csv(sample, public / "sample_submission.csv")
    answers = boxes[boxes["image_id"].isin(test)].groupby(["image_id", "class_id"]).first().reset_index()
    answers[_CORNERS] = answers[_CORNERS].fillna(0)
    answers.loc[answers["class_id"] == 14, ["x_max", "y_max"]] = 1.0
    write_csv(answers, private / "answers.csv")
    fields = zip(answers["class_id"], *(answers[corner] for corner in _CORNERS), strict=True)
    answers["PredictionString"] = [f"{label} 1.0 {' '.join(map(str, corners))}" for label, *corners in fields]
    gold = answers.groupby("image_id")["PredictionString"].agg(" ".join).reset_index()
    write_csv(gold, private / "gold_submission.csv")


def _area(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    return (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Chests with bright spots; a finding's class shows in place, size and brightness, boxes differ by reader."""
    images, side = {"tiny": (240, 48), "small": (700, 64)}[size]
    places = rng.uniform(0.25, 0.75, (14, 2))
    radii, bright = rng.uniform(0.07, 0.14, (14, 2)), rng.uniform(500, 1700, 14)
    often = 1.0 / np.arange(1, 15)
    sick = split_labels(rng, images, [0.55, 0.45])
    rows = []
    (raw / "train").mkdir()
    for number, findings in enumerate(sick.tolist()):
        image = hex_id(rng)
        readers = [f"R{reader}" for reader in rng.choice(np.arange(1, 18), 3, replace=False)]
        pixels = np.full((side, side), 2200.0)
        for x in (0.3, 0.7):
            pixels[ellipse(pixels.shape, (side * 0.5, side * x), (side * 0.4, side * 0.2)) > 0] = 900.0
        kinds = rng.choice(14, int(rng.integers(1, 4)) * findings, replace=False, p=often / often.sum())
        for kind in kinds.tolist():
            y, x = places[kind] * side + rng.normal(0, side * 0.05, 2)
            high, wide = radii[kind] * side * rng.uniform(0.8, 1.2, 2)
            pixels += (ellipse(pixels.shape, (y, x), (high, wide)) > 0) * bright[kind]
            for reader in readers:
                corners = np.array([x - wide, y - high, x + wide, y + high]) + rng.normal(0, 0.8, 4)
                rows.append((image, _FINDINGS[kind], kind, reader, *corners.clip(0, side).round(0)))
        if not findings:
            rows += [(image, "No finding", 14, reader, *[np.nan] * 4) for reader in readers]
        pixels += rng.normal(0, 180, pixels.shape)
        (raw / "train" / f"{image}.dicom").write_bytes(dicom_bytes(pixels, number))
    order = rng.permutation(len(rows))
    columns = ["image_id", "class_name", "class_id", "rad_id", *_CORNERS]
    write_csv(pd.DataFrame([rows[at] for at in order], columns=columns), raw / "train.csv")
