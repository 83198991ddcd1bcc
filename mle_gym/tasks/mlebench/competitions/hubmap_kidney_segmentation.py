"""HuBMAP - Hacking the Kidney: where are the glomeruli in microscope images of kidneys?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import require_columns
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.rle import dice, read_runs


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean of the images' Dice coefficients."""
    require_columns(submission, "id", "predicted")
    order, _ = same_order(submission, answers, "id")
    pixels = (answers["width_pixels"] * answers["height_pixels"]).to_numpy()
    sizes = np.empty_like(pixels)
    sizes[order] = pixels
    found = read_runs(submission["predicted"], "predicted", sizes.tolist(), allow_empty=True)
    truth = read_runs(answers["encoding"], "encoding", pixels.tolist(), allow_empty=True)
    return float(np.mean([dice(found[at], mask, 1.0) for at, mask in zip(order, truth, strict=True)]))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out three of the fifteen labelled images."""
    labelled, about = read_csv(raw / "train.csv"), read_csv(raw / "HuBMAP-20-dataset_information.csv")
    train, test = split_rows(labelled, train_size=12, test_size=3)
    about["id"] = about["image_file"].str.replace(".tiff", "", regex=False)
    about = about[about["id"].isin(labelled["id"])]
    test = test.merge(about[["id", "width_pixels", "height_pixels"]], on="id")
    for name, part in (("train", train), ("test", test)):
        files = [f"{image}{kind}" for image in part["id"] for kind in (".tiff", ".json", "-anatomical-structure.json")]
        copy_files((raw / "train" / file, public / name / file) for file in files)
    write_csv(about.drop(columns="id"), public / "HuBMAP-20-dataset_information.csv")
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test[["id"]].assign(predicted=test["encoding"]), private / "gold_submission.csv")
    for folder in (public, public / "test"):
        write_csv(test[["id"]].assign(predicted=""), folder / "sample_submission.csv")
