"""VinBigData Chest X-ray Abnormalities Detection: which of 14 findings does a chest X-ray show, and where?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.boxes import Boxes, coco_average_precision, read_detections
from mle_gym.tasks.mlebench.checks import require_columns, require_same_ids, say
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv

_CORNERS = ["x_min", "y_min", "x_max", "y_max"]


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
