"""Histopathologic Cancer Detection: does the centre of a patch of lymph node tissue hold tumour?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id, image_bytes
from mle_gym.tasks.mlebench.metrics import binary_auc


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Area under the ROC curve."""
    return binary_auc(submission, answers, "id", "label")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out as large a share of the labelled patches as Kaggle's test set is of all patches."""
    labels = read_csv(raw / "train_labels.csv")
    unlabelled = sum(1 for _ in (raw / "test").glob("*.tif"))
    _, held_out = split_rows(labels["id"], test_size=unlabelled / (len(labels) + unlabelled))
    tested = labels["id"].isin(held_out)
    train, test = labels[~tested], labels[tested]
    for name, part in (("train", train), ("test", test)):
        copy_files((raw / "train" / f"{patch}.tif", public / name / f"{patch}.tif") for patch in part["id"])
    write_csv(train, public / "train_labels.csv")
    write_csv(test, private / "answers.csv")
    write_csv(test.assign(label=0), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Pink patches of 96 x 96 pixels with purple nuclei; tumour is a crowd of them in the centre, 32 x 32."""
    rows = {"tiny": 130, "small": 900}[size]
    unlabelled = round(rows * 57458 / 220025)
    ids = [hex_id(rng, 40) for _ in range(rows + unlabelled)]
    labels = (rng.random(rows + unlabelled) < 0.4).astype(int)
    for name in ("train", "test"):
        (raw / name).mkdir()
    for row, (patch, label) in enumerate(zip(ids, labels, strict=True)):
        cells = rng.normal((225, 165, 205), 14, (24, 24, 3))
        nuclei = rng.random((24, 24)) < rng.uniform(0.05, 0.4)
        nuclei[8:16, 8:16] = rng.random((8, 8)) < (rng.uniform(0.3, 0.75) if label else rng.uniform(0.05, 0.4))
        cells[nuclei] += (-90, -95, -60)
        pixels = cells.repeat(4, axis=0).repeat(4, axis=1)
        folder = raw / ("train" if row < rows else "test")
        (folder / f"{patch}.tif").write_bytes(image_bytes(pixels, "TIFF", compression="tiff_adobe_deflate"))
    pd.DataFrame({"id": ids[:rows], "label": labels[:rows]}).to_csv(raw / "train_labels.csv", index=False)
