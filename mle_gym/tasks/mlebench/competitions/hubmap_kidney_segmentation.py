"""HuBMAP - Hacking the Kidney: where are the glomeruli in microscope images of kidneys?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import ellipse, hex_id, image_bytes
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.rle import dice, encode_runs, read_runs


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


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Pink tissue with small dark cells; glomeruli are large bluish discs, vessels of that size are white."""
    side = {"tiny": 128, "small": 256}[size]
    ids = [hex_id(rng, 9) for _ in range(20)]
    about, runs = [], list[str]()
    (raw / "train").mkdir()
    for image in ids:
        height, width = (int(side * factor) for factor in rng.uniform(0.75, 1.25, 2))
        tissue = np.full((height, width, 3), (225.0, 170.0, 200.0)) + rng.normal(0, 8, 3)
        cells = rng.random((height, width)) < 0.03
        glomeruli = np.zeros((height, width), dtype=np.bool_)
        shapes = []
        for kind in rng.permutation(["glomerulus"] * 5 + ["vessel"] * 4):
            middle, radius = rng.uniform((8, 8), (height - 8, width - 8)), side * rng.uniform(0.06, 0.11)
            angles = np.linspace(0, 2 * np.pi, 17)
            inside = ellipse((height, width), (middle[0], middle[1]), (radius, radius)) > 0
            tissue[inside] = (190, 130, 190) if kind == "glomerulus" else (240, 235, 240)
            cells[inside] = rng.random(int(inside.sum())) < (0.12 if kind == "glomerulus" else 0.0)
            glomeruli[inside] = kind == "glomerulus"
            if kind == "glomerulus":
                outline = np.stack([middle[1] + radius * np.cos(angles), middle[0] + radius * np.sin(angles)], axis=1)
                shapes.append(_feature(kind, outline.round(1).tolist()))
        tissue[cells] = (110, 70, 150)
        info = {
            "image_file": f"{image}.tiff",
            "width_pixels": width,
            "height_pixels": height,
            "anatomical_structures_segmention_file": f"{image}-anatomical-structure.json",
            "glomerulus_segmentation_file": f"{image}.json",
            "patient_number": int(rng.integers(60000, 70000)),
            "race": "White",
            "sex": str(rng.choice(["Male", "Female"])),
            "age": int(rng.integers(20, 80)),
            "laterality": str(rng.choice(["Left", "Right"])),
            "percent_cortex": int(rng.integers(5, 16)) * 5,
        }
        about.append(info)
        if len(runs) == 15:  # Kaggle's own test images are told of, but not among the files.
            continue
        runs.append(encode_runs(glomeruli.T.ravel()))
        frame: list[list[float]] = [[0, 0], [width, 0], [width, height], [0, height], [0, 0]]
        pixels = tissue + rng.normal(0, 6, tissue.shape)
        (raw / "train" / f"{image}.tiff").write_bytes(image_bytes(pixels, "TIFF", compression="jpeg"))
        (raw / "train" / f"{image}.json").write_text(json.dumps(shapes))
        (raw / "train" / f"{image}-anatomical-structure.json").write_text(json.dumps([_feature("Cortex", frame)]))
    write_csv(pd.DataFrame({"id": ids[:15], "encoding": runs}), raw / "train.csv")
    write_csv(pd.DataFrame(about), raw / "HuBMAP-20-dataset_information.csv")


def _feature(kind: str, outline: list[list[float]]) -> dict[str, object]:
    """A shape as GeoJSON."""
    properties = {"classification": {"name": kind, "colorRGB": -3140401}, "isLocked": True}
    shape = {"type": "Polygon", "coordinates": [outline]}
    return {"type": "Feature", "id": "PathAnnotationObject", "geometry": shape, "properties": properties}
