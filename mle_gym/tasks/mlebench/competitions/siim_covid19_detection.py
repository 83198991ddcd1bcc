"""SIIM-FISABIO-RSNA COVID-19 Detection: which chest X-rays show signs of COVID-19, and where?"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.boxes import Detections, read_detections
from mle_gym.tasks.mlebench.checks import require_columns, require_rows, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import dicom_bytes, ellipse, hex_id, split_labels
from mle_gym.tasks.mlebench.metrics import same_order

_LAYOUT = "label confidence xmin ymin xmax ymax"
_LABELS = ("negative", "typical", "indeterminate", "atypical")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean over the answers' labels of the average precision of boxes with an IoU above 0.5."""
    from sklearn.metrics import average_precision_score

    require_rows(submission, len(answers))
    require_columns(submission, "id", "PredictionString")
    order, _ = same_order(submission, answers, "id")
    cells = read_detections(submission["PredictionString"], "PredictionString", _LAYOUT, separator=None)
    truth = read_detections(answers["PredictionString"], "PredictionString", _LAYOUT, separator=None)
    labels = sorted({label for cell in truth for label in cell.labels})
    for row, cell in enumerate(cells, start=1):
        for label, confidence in zip(cell.labels, cell.values[:, 0].tolist(), strict=True):
            if label in labels and not np.isfinite(confidence):
                raise InvalidSubmission(
                    f"Column 'PredictionString', row {row}: {say(confidence)} as the confidence of {say(label)}; "
                    "expected a finite number."
                )
    found = [_most_confident_first(cells[at]) for at in order]
    precisions = []
    for label in labels:
        hits, scores = (
            np.concatenate(part) for part in zip(*map(_pairs, found, truth, [label] * len(truth)), strict=True)
        )
        if hits.all():
            raise InvalidSubmission(
                f"Column 'PredictionString': every box of {say(label)} is right and every row has one, which leaves "
                "its average precision undefined."
            )
        precisions.append(average_precision_score(hits, scores))
    return float(np.mean(precisions)) if precisions else 0.0


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the studies, with their images."""
    studies, images = read_csv(raw / "train_study_level.csv"), read_csv(raw / "train_image_level.csv")
    parts = [part.sort_values("id") for part in split_rows(studies, test_size=0.1)]
    for name, part in zip(("train", "test"), parts, strict=True):
        for study in part["id"].str.replace("_study", ""):
            shutil.copytree(raw / "train" / study, public / name / study)
    of_study = images["StudyInstanceUID"] + "_study"
    train_images, test_images = (images[of_study.isin(part["id"])].sort_values("id") for part in parts)
    train, test = parts
    write_csv(train, public / "train_study_level.csv")
    write_csv(train_images, public / "train_image_level.csv")
    verdicts = [f"{_LABELS[at]} 1 0 0 1 1" for at in test.drop(columns="id").to_numpy().argmax(axis=1)]
    ids = [*test["id"], *test_images["id"]]
    answers = pd.DataFrame({"id": ids, "PredictionString": [*verdicts, *test_images["label"]]})
    write_csv(answers, private / "test.csv")
    guess = ["negative 1 0 0 1 1"] * len(test) + ["none 1 0 0 1 1"] * len(test_images)
    write_csv(answers.assign(PredictionString=guess), public / "sample_submission.csv")


def _most_confident_first(cell: Detections) -> Detections:
    order = sorted(range(len(cell.labels)), key=cell.values[:, 0].tolist().__getitem__, reverse=True)
    return Detections([cell.labels[at] for at in order], cell.values[order])


def _pairs(found: Detections, truth: Detections, label: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Pairs of hit and confidence of one row and label; boxes that were missed count as hits of confidence 0."""
    wanted = truth.values[[name == label for name in truth.labels], 1:]
    mine = found.values[[name == label for name in found.labels]]
    ious = _iou(mine[:, 1:], wanted)
    hits = np.zeros(len(mine), dtype=np.int64)
    for row in range(len(mine) if len(wanted) else 0):
        best = int(np.argmax(ious[row]))
        if ious[row, best] > 0.5:
            hits[row], ious[:, best] = 1, 0.0
    missed = len(wanted) - int(hits.sum())
    nothing = int(not len(mine) and not missed)
    return (
        np.concatenate([hits, np.ones(missed, dtype=np.int64), np.zeros(nothing, dtype=np.int64)]),
        np.concatenate([mine[:, 0], np.zeros(missed + nothing)]),
    )


def _iou(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Intersection over union of boxes xmin, ymin, xmax, ymax, shape (first, second); 0 where a side is nan."""
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    both = np.maximum(high - low, 0.0).prod(axis=2)
    area, true_area = ((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) for boxes in (first, second))
    union = area[:, None] + true_area[None, :] - both
    ious: NDArray[np.float64] = np.divide(both, union, out=np.zeros_like(both), where=union > 0)
    return np.nan_to_num(ious)


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Dark lungs in a bright chest; where the bright spots lie makes the appearance: both lungs, one, or the middle."""
    count, side = {"tiny": (240, 40), "small": (700, 56)}[size]
    columns = [f"{kind} Appearance" for kind in ("Typical", "Indeterminate", "Atypical")]
    verdicts = split_labels(rng, count, [0.28, 0.42, 0.18, 0.12])
    studies, images = [], []
    for study, verdict in zip((hex_id(rng, 12) for _ in range(count)), verdicts.tolist(), strict=True):
        truth = [int(verdict == at) for at in range(4)]
        studies.append((f"{study}_study", *truth))
        for _ in range(1 + int(rng.random() < 0.1)):
            series, image = hex_id(rng, 12), hex_id(rng, 12)
            pixels, boxes = _chest(rng, side, verdict)
            places = [dict(zip(("x", "y", "width", "height"), box, strict=True)) for box in boxes]
            label = " ".join(f"opacity 1 {x} {y} {round(x + w, 5)} {round(y + h, 5)}" for x, y, w, h in boxes)
            images.append((f"{image}_image", str(places) if places else None, label or "none 1 0 0 1 1", study))
            file = raw / "train" / study / series / f"{image}.dcm"
            file.parent.mkdir(parents=True)
            file.write_bytes(dicom_bytes(pixels, len(images), PatientID=study, Modality="DX", BodyPartExamined="CHEST"))
    study_table = pd.DataFrame(studies, columns=["id", "Negative for Pneumonia", *columns])
    image_table = pd.DataFrame(images, columns=["id", "boxes", "label", "StudyInstanceUID"])
    write_csv(study_table, raw / "train_study_level.csv")
    write_csv(image_table, raw / "train_image_level.csv")


def _chest(
    rng: np.random.Generator, side: int, verdict: int
) -> tuple[NDArray[np.float64], list[tuple[float, float, float, float]]]:
    """An X-ray of 12 bits and the boxes x, y, width, height of its opacities."""
    shape = (side, side)
    pixels = np.full(shape, 2600.0)
    for x in (0.28, 0.72):
        pixels[ellipse(shape, (side * 0.5, side * x), (side * 0.4, side * 0.19)) > 0] = 900.0
    spots = {0: [], 1: [(0.65, 0.25), (0.65, 0.75)], 2: [(0.55, rng.choice([0.25, 0.75]))], 3: [(0.25, 0.35)]}[verdict]
    boxes = []
    for y, x in spots:
        y, x = np.array((y, x)) * side + rng.normal(0, side * 0.04, 2)
        high, wide = rng.uniform(0.09, 0.16, 2) * side
        pixels += np.maximum(ellipse(shape, (y, x), (high, wide)), 0) ** 0.5 * rng.uniform(700, 1500)
        if rng.random() < 0.9:  # some are missed by the radiologists
            left, top, width, height = (round(float(value), 5) for value in (x - wide, y - high, 2 * wide, 2 * high))
            boxes.append((left, top, width, height))
    return pixels + rng.normal(0, 180, shape), boxes
