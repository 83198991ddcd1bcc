"""Vesuvius Challenge - Ink Detection: where on a papyrus fragment is ink, seen in an X-ray volume?"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns, require_rows, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, write_csv
from mle_gym.tasks.mlebench.imitate import image_bytes
from mle_gym.tasks.mlebench.rle import encode_runs, read_runs


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """F0.5 of the pixels; rows are matched by their order."""
    require_rows(submission, len(answers))
    require_columns(submission, "Id", "Predicted")
    if len(submission.columns) > 2:
        require_columns(submission, "Id", "Predicted", exact=True)
    for row, (found, expected) in enumerate(zip(submission["Id"], answers["Id"], strict=True), start=1):
        if found != expected:
            raise InvalidSubmission(f"Column 'Id', row {row}: {say(found)}; expected {say(expected)}.")
    pixels = (answers["width"] * answers["height"]).tolist()
    scores = []
    for ink, truth in zip(
        read_runs(submission["Predicted"], "Predicted", pixels),
        read_runs(answers["Predicted"], "Predicted", pixels),
        strict=True,
    ):
        total = 0.25 * truth.area + ink.area
        scores.append(1.25 * ink.overlap(truth) / total if total else 0.0)
    return float(np.mean(scores))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out the third fragment, without its labels and its infrared photo."""
    from PIL import Image

    fragment = raw / "train" / "3"
    labels = read_csv(fragment / "inklabels_rle.csv")
    with Image.open(fragment / "ir.png") as photo:
        labels["width"], labels["height"] = photo.size
    labels["Id"] = "a"
    for name in ("1", "2"):
        shutil.copytree(raw / "train" / name, public / "train" / name)
    secret = shutil.ignore_patterns("inklabels.png", "inklabels_rle.csv", "ir.png")
    shutil.copytree(fragment, public / "test" / "a", ignore=secret)
    write_csv(labels, private / "inklabels_rle.csv")
    write_csv(labels.drop(columns=["width", "height"]), private / "gold_submission.csv")
    sample = pd.DataFrame({"Id": ["a"], "Predicted": ["1 1 5 1"]})
    write_csv(sample, public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Papyrus as a bright layer in the middle of a noisy volume; ink, in strokes, makes it a little denser."""
    from PIL import Image, ImageDraw
    from scipy.ndimage import gaussian_filter

    width, height, depth = {"tiny": (90, 70, 12), "small": (150, 130, 20)}[size]
    for name in ("1", "2", "3"):
        folder = raw / "train" / name
        (folder / "surface_volume").mkdir(parents=True)
        drawing = Image.new("L", (width, height))
        pen = ImageDraw.Draw(drawing)
        for x in range(10, width - 14, 22):
            for y in range(8, height - 16, 22):
                strokes = np.array((x, y)) + rng.integers(0, 15, (3, 2, 2))
                for stroke in strokes:
                    pen.line([tuple(map(int, end)) for end in stroke], fill=255, width=3)
        papyrus = gaussian_filter(rng.normal(size=(height, width)), 12) > -0.03
        ink = (np.asarray(drawing) > 0) & papyrus
        fibres = gaussian_filter(rng.normal(size=(height, width)), (0.5, 4))
        for layer in range(depth):
            near = np.exp(-(((layer - depth / 2) / (depth / 6)) ** 2))
            signal = papyrus * near * (0.5 + 0.15 * fibres / fibres.std() + 0.22 * gaussian_filter(ink * 1.0, 0.8))
            voxels = 8000 + 36000 * signal + rng.normal(0, 3500, (height, width))
            path = folder / "surface_volume" / f"{layer:02}.tif"
            Image.fromarray(voxels.clip(0, 65535).astype(np.uint16)).save(path, compression="tiff_lzw")
        photo = papyrus * (150 - 70 * gaussian_filter(ink * 1.0, 1)) + rng.normal(20, 8, (height, width))
        for kind, pixels in (("ir", photo), ("mask", papyrus * 255), ("inklabels", ink * 255)):
            (folder / f"{kind}.png").write_bytes(image_bytes(pixels))
        labels = pd.DataFrame({"Id": [name], "Predicted": [encode_runs(ink.ravel())]})
        write_csv(labels, folder / "inklabels_rle.csv")
