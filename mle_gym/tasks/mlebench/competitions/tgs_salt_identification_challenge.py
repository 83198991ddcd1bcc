"""TGS Salt Identification Challenge: which pixels of a seismic image are salt?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, extract, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id, image_bytes, write_zip
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.rle import encode_runs, read_runs

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


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Bent layers of rock; salt is a brighter body without layers below a wavy line, more often in deep images."""
    rows = {"tiny": 120, "small": 480}[size]
    ids = [hex_id(rng, 10) for _ in range(rows)]
    depths = rng.integers(50, 960, rows)
    members: dict[str, bytes | str] = {}
    runs = []
    y, x = np.indices((_SIDE, _SIDE), dtype=np.float64)
    for name, depth in zip(ids, depths.tolist(), strict=True):
        bend = rng.uniform(-8, 8) * np.sin(x / rng.uniform(15, 40)) + rng.uniform(-0.3, 0.3) * x
        rock = 110 + 35 * np.sin((y + bend) / rng.uniform(2, 4))
        edge = (
            rng.uniform(-20, 110) + rng.uniform(-12, 12) * np.sin(x / rng.uniform(8, 20)) + rng.uniform(-0.8, 0.8) * x
        )
        salt = (y > edge) & (rng.random() < 0.3 + 0.5 * depth / 960)
        pixels = np.where(salt, rng.uniform(130, 165), rock) + rng.normal(0, 14, rock.shape)
        members[f"competition_data/train/images/{name}.png"] = image_bytes(pixels // 8 * 8)
        members[f"competition_data/train/masks/{name}.png"] = image_bytes(salt * 255)
        runs.append(encode_runs(salt.T.ravel()))
    members["competition_data/train.csv"] = pd.DataFrame({"id": ids, "rle_mask": runs}).to_csv(index=False)
    write_zip(raw / "competition_data.zip", members)
    write_csv(pd.DataFrame({"id": ids, "z": depths}), raw / "depths.csv")
