"""Cassava Leaf Disease Classification: which of four diseases, if any, has a cassava plant?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import image_bytes
from mle_gym.tasks.mlebench.metrics import accuracy
from mle_gym.tasks.mlebench.tfrecord import image_names, write_examples

_DISEASES = {
    "0": "Cassava Bacterial Blight (CBB)",
    "1": "Cassava Brown Streak Disease (CBSD)",
    "2": "Cassava Green Mottle (CGM)",
    "3": "Cassava Mosaic Disease (CMD)",
    "4": "Healthy",
}


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of photos with the right label."""
    return accuracy(submission, answers, "image_id", "label")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out the photos in a tenth of the files of records, which is two of sixteen."""
    kept, held_out = split_rows(sorted((raw / "train_tfrecords").glob("*.tfrec")), test_size=0.1)
    rows = read_csv(raw / "train.csv")
    tested = rows["image_id"].isin(image_names(held_out))
    train, test = rows[~tested], rows[tested]
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.assign(label=4), public / "sample_submission.csv")
    for name, part, files in (("train", train, kept), ("test", test, held_out)):
        copy_files(
            (file, public / f"{name}_tfrecords" / f"ld_{name}{number:02d}-{file.stem.split('-')[1]}.tfrec")
            for number, file in enumerate(files)
        )
        copy_files((raw / "train_images" / image, public / f"{name}_images" / image) for image in part["image_id"])
    shutil.copyfile(raw / "label_num_to_disease_map.json", public / "label_num_to_disease_map.json")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Green leaves of 40 x 40 pixels: brown spots, brown streaks, pale mottle, a yellow mosaic, or nothing."""
    each = {"tiny": 15, "small": 90}[size]
    rows = 16 * each
    ids = [f"{number}.jpg" for number in 10**7 + rng.choice(4 * 10**9, rows, replace=False)]
    labels = rng.choice(5, rows, p=[0.10, 0.14, 0.14, 0.45, 0.17])
    pictures: list[bytes] = []
    (raw / "train_images").mkdir()
    for image, label in zip(ids, labels, strict=True):
        pixels = rng.normal((70, 130, 55), 16, (40, 40, 3)) + rng.normal(0, 12, 3)
        y, x = np.mgrid[:40, :40]
        strength = rng.uniform(0.35, 1.0)
        if label == 0:
            for at in rng.integers(2, 38, (rng.integers(3, 9), 2)):
                pixels[np.hypot(y - at[0], x - at[1]) < rng.uniform(1, 3)] -= strength * np.array((-40, 60, 30))
        elif label == 1:
            stripes = np.sin(x * rng.uniform(0.7, 1.1) + y * rng.uniform(-0.4, 0.4) + rng.uniform(0, 6)) > 0.7
            pixels[stripes] -= strength * np.array((-35, 45, 20))
        elif label in (2, 3):
            cells = rng.random((10, 10)) < (0.25 if label == 2 else 0.5)
            patches = cells.repeat(4, axis=0).repeat(4, axis=1)
            pixels[patches] += strength * np.array((20, 35, 45) if label == 2 else (75, 55, -10))
        pictures.append(image_bytes(pixels, "JPEG", quality=88))
        (raw / "train_images" / image).write_bytes(pictures[-1])
    pd.DataFrame({"image_id": ids, "label": labels}).to_csv(raw / "train.csv", index=False)
    (raw / "label_num_to_disease_map.json").write_text(json.dumps(_DISEASES))
    # The records hold no label here: those of the test set are handed out as they are.
    for file in range(16):
        examples = (
            {"image": [pictures[row]], "image_name": [ids[row].encode()]}
            for row in range(file * each, (file + 1) * each)
        )
        write_examples(raw / "train_tfrecords" / f"ld_train{file:02d}-{each}.tfrec", examples)
