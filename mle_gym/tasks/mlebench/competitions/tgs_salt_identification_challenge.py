"""TGS Salt Identification Challenge: which pixels of a seismic image are salt?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import require_columns
from mle_gym.tasks.mlebench.files import copy_files, extract, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.rle import read_runs

_SIDE = 101
_THRESHOLDS = np.arange(0.5, 1.0, 0.05)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean over images of the share of IoU thresholds that the mask exceeds."""
    require_columns(submission, "id", "rle_mask")
    if len(submission.columns) > 2:
        require_columns(submission, "id", "rle_mask", exact=True)
    order, _ = same_order(submission, answers, "id")
    pixels = _SIDE * _SIDE
    found = read_runs(submission["rle_mask"], "rle_mask", [pixels] * len(submission), allow_empty=True)
    truth = read_runs(answers["rle_mask"], "rle_mask", [pixels] * len(answers), allow_empty=True)
    scores = []
    for mask, salt in zip((found[at] for at in order), truth, strict=True):
        area, true_area = mask.area, salt.area
        if not true_area:
            scores.append(float(not area))
            continue
        # MLE-bench counts with a histogram of two bins, in which an empty mask looks like a full one.
        both, either = (mask.overlap(salt), area) if area else (true_area, pixels)
        scores.append(float(np.mean(both / (true_area + either - both) > _THRESHOLDS)))
    return float(np.mean(scores))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a quarter of the labelled images; the depths of the test images are left out, too."""
    folder = extract(raw / "competition_data.zip", raw) / "competition_data"
    train, test = (
        part.sort_values("id") for part in split_rows(read_csv(folder / "train.csv").fillna(""), test_size=0.25)
    )
    for name, part in (("train", train), ("test", test)):
        for kind in ("images", "masks") if name == "train" else ("images",):
            copy_files(
                (folder / "train" / kind / f"{image}.png", public / name / kind / f"{image}.png")
                for image in part["id"]
            )
    depths = read_csv(raw / "depths.csv")
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.assign(rle_mask="1 1"), public / "sample_submission.csv")
    write_csv(depths[depths["id"].isin(train["id"])].sort_values("id"), public / "depths.csv")
