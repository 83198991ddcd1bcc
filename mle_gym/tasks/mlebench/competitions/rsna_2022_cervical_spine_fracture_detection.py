"""RSNA 2022 Cervical Spine Fracture Detection: which of seven vertebrae are broken in a CT study?"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns, require_same_ids
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, write_csv
from mle_gym.tasks.mlebench.imitate import dicom_bytes, ellipse

VERTEBRAE = tuple(f"C{number}" for number in range(1, 8))
SHARE = 0.1
"""What is kept to train on; MLE-bench has the sizes of the two parts the wrong way round."""


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean over studies of the log loss, weighted 7 for the whole spine and 1 for a vertebra, twice that if broken."""
    require_columns(submission, "row_id", "fractured")
    numbers(submission, "fractured", low=0.0, high=1.0)
    require_same_ids(submission, answers, "row_id")
    chance = numbers(aligned(submission, answers, "row_id"), "fractured").clip(1e-15, 1 - 1e-15)
    broken = answers["fractured"].to_numpy(dtype=np.float64)
    loss = -(broken * np.log(chance) + (1 - broken) * np.log(1 - chance))
    weight = np.where(answers["prediction_type"] == "patient_overall", 7.0, 1.0) * (1 + broken)
    study, _ = pd.factorize(answers["StudyInstanceUID"])
    return float((np.bincount(study, loss * weight) / np.bincount(study, weight)).mean())


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Keep 10 % of the studies to train on, the same share of those with boxes, with masks and with both."""
    whole, boxes = read_csv(raw / "train.csv"), read_csv(raw / "train_bounding_boxes.csv")
    boxed = sorted(boxes["StudyInstanceUID"].unique())
    masked = sorted(path.stem for path in (raw / "segmentations").glob("*.nii"))
    both = [study for study in boxed if study in set(masked)]
    rng = random.Random(0)
    shared = rng.sample(both, round(len(both) * SHARE))
    only_masked = rng.sample([s for s in masked if s not in set(both)], round(len(masked) * SHARE) - len(shared))
    only_boxed = rng.sample([s for s in boxed if s not in set(both)], round(len(boxed) * SHARE) - len(shared))
    chosen = {*shared, *only_masked, *only_boxed}
    rest = [study for study in whole["StudyInstanceUID"] if study not in chosen]
    chosen.update(rng.sample(rest, round(len(whole) * SHARE) - len(chosen)))

    inside = whole["StudyInstanceUID"].isin(chosen)
    write_csv(whole[inside], public / "train.csv")
    write_csv(boxes[boxes["StudyInstanceUID"].isin({*shared, *only_boxed})], public / "train_bounding_boxes.csv")
    answers = whole[~inside].melt(id_vars="StudyInstanceUID", var_name="prediction_type", value_name="fractured")
    answers["row_id"] = answers["StudyInstanceUID"] + "_" + answers["prediction_type"]
    write_csv(answers, private / "answers.csv")
    write_csv(answers.drop(columns="fractured"), public / "test.csv")
    write_csv(answers[["row_id"]].assign(fractured=0.5), public / "sample_submission.csv")

    masks = [f"{study}.nii" for study in (*shared, *only_masked)]
    (public / "segmentations").mkdir()
    copy_files((raw / "segmentations" / mask, public / "segmentations" / mask) for mask in masks)
    for name, studies in (("train_images", whole[inside]), ("test_images", whole[~inside])):
        for study in studies["StudyInstanceUID"]:
            shutil.copytree(raw / "train_images" / study, public / name / study)


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """One slice of each vertebra, a bright ring in soft tissue; a fracture is a dark gap in the ring."""
    import nibabel

    count = {"tiny": 44, "small": 240}[size]
    for folder in ("segmentations", "train_images"):
        (raw / folder).mkdir()
    numbers = rng.permutation(np.arange(1, 33_000))[:count]
    rows: list[dict[str, Any]] = []
    boxes = []
    for number in numbers:
        study = f"1.2.826.0.1.3680043.{number}"
        hurt = rng.random() < 0.5
        broken = {name: int(hurt and rng.random() < 0.3) for name in VERTEBRAE}
        rows.append({"StudyInstanceUID": study, "patient_overall": int(any(broken.values())), **broken})
        (raw / "train_images" / study).mkdir()
        tags: dict[str, Any] = {"StudyInstanceUID": study, "SeriesInstanceUID": f"{study}.1", "PatientID": str(number)}
        tags |= {"Modality": "CT", "RescaleSlope": 1, "RescaleIntercept": -1024, "SliceThickness": 5}
        tags |= {"PixelSpacing": [8, 8], "ImageOrientationPatient": [1, 0, 0, 0, 1, 0]}
        masks = []
        for place, bone in enumerate(VERTEBRAE):
            pixels, mask, gap = _slice(rng, broken=bool(broken[bone]))
            tags |= {"InstanceNumber": place + 1, "ImagePositionPatient": [0, 0, -5 * place]}
            image = dicom_bytes(pixels + 1024, 100 * int(number) + place, **tags)
            (raw / "train_images" / study / f"{place + 1}.dcm").write_bytes(image)
            masks.append(mask * (place + 1))
            if broken[bone] and number % 3 == 0:
                boxes.append((study, float(gap[1] - 3), float(gap[0] - 3), 6.0, 6.0, place + 1))
        if number % 5 == 0:
            path = raw / "segmentations" / f"{study}.nii"
            volume = np.stack(masks, axis=-1).astype(np.uint8)
            nibabel.save(nibabel.Nifti1Image(volume, np.eye(4)), path)  # type: ignore[no-untyped-call]
    write_csv(pd.DataFrame(rows), raw / "train.csv")
    columns = ["StudyInstanceUID", "x", "y", "width", "height", "slice_number"]
    write_csv(pd.DataFrame(boxes, columns=columns), raw / "train_bounding_boxes.csv")


def _slice(
    rng: np.random.Generator, *, broken: bool
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    """Hounsfield units of 24 x 24 pixels, which of them are bone, and where the gap is (row, column)."""
    shape, middle = (24, 24), rng.uniform(10, 14, 2)
    ring = ellipse(shape, tuple(middle), (8.0, 9.0), 0.0)
    bone = (ring > 0) & (ring < 0.4)
    pixels = rng.normal(40, 60, shape) + np.where(bone, rng.uniform(400, 800), 0)
    turn = rng.uniform(0, 2 * np.pi)
    gap = middle + 7.0 * np.array([np.sin(turn), np.cos(turn)])
    depth = rng.uniform(0.4, 1.0) if broken else rng.uniform(0.0, 0.4) * (rng.random() < 0.3)
    pixels -= depth * 600 * (bone & (ellipse(shape, tuple(gap), (2.2, 2.2)) > 0))
    return pixels.round(), bone, gap
