"""RSNA 2022 Cervical Spine Fracture Detection: which of seven vertebrae are broken in a CT study?"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns, require_same_ids
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, write_csv

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
    rng = random.Random(0)  # noqa: S311
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
