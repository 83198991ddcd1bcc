"""Denoising Dirty Documents: clean the scan of a stained and creased page, pixel by pixel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, extract, split_rows, write_csv
from mle_gym.tasks.mlebench.frames import read_answers as read_table
from mle_gym.tasks.mlebench.imitate import image_bytes, sentence, words, write_zip
from mle_gym.tasks.mlebench.regression import matched, rmse


def read_answers(path: Path) -> pd.DataFrame:
    """Read the pixels and name their page, so that the pixels of one page stay together when answers are cut."""
    answers = read_table(path)
    return answers.assign(page=answers["id"].str.partition("_")[0])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Root mean squared error over all pixels."""
    return rmse(matched(submission, answers, "id", "value"))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 20 % of the pages; their clean versions become one row for each pixel, row by row."""
    from PIL import Image

    dirty, clean = (extract(raw / f"{name}.zip", raw) / name for name in ("train", "train_cleaned"))
    train, test = split_rows(sorted(path.name for path in dirty.glob("*.png")), test_size=0.2)
    copy_files((dirty / page, public / "train" / page) for page in train)
    copy_files((clean / page, public / "train_cleaned" / page) for page in train)
    copy_files((dirty / page, public / "test" / page) for page in test)
    parts = []
    for page in sorted(test):
        with Image.open(clean / page) as image:
            grey = np.asarray(image.convert("L")) / 255.0
        rows, columns = grey.shape
        name = Path(page).stem
        ids = [f"{name}_{row}_{column}" for row in range(1, rows + 1) for column in range(1, columns + 1)]
        parts.append(pd.DataFrame({"id": ids, "value": grey.ravel()}))
    answers = pd.concat(parts, ignore_index=True)
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(value=1), public / "sampleSubmission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Lines of made-up words on white; the scan adds a shade, a crease, a ring left by a cup, and noise."""
    from PIL import Image, ImageDraw, ImageFont

    pages = {"tiny": 60, "small": 100}[size]
    vocabulary, font = words(rng, 200), ImageFont.load_default()
    clean, dirty = {}, {}
    for number in rng.permutation(np.arange(2, 2 * pages + 2))[:pages]:
        shape = (int(rng.choice([48, 60])), 90)
        image = Image.new("L", shape[::-1], 255)
        draw = ImageDraw.Draw(image)
        for top in range(1, shape[0] - 10, 12):
            draw.text((2, top), sentence(rng, vocabulary, 5), fill=0, font=font)
        grey = np.asarray(image, dtype=np.float64)
        centre, radius = rng.random(2) * shape, rng.uniform(10, 24)
        rows, columns = np.indices(shape)
        ring = np.abs(np.hypot(rows - centre[0], columns - centre[1]) - radius) < 3
        crease = np.abs((rows - centre[0]) + (columns - centre[1]) * rng.normal(0, 0.4)) < 1.5
        shade = np.linspace(rng.uniform(150, 215), rng.uniform(150, 215), shape[1])
        paper = shade - 45 * ring - 30 * crease + rng.normal(0, 9, shape)
        clean[f"train_cleaned/{number}.png"] = image_bytes(grey)
        dirty[f"train/{number}.png"] = image_bytes(np.minimum(grey * 0.9 + 40, paper))
    write_zip(raw / "train.zip", dirty)
    write_zip(raw / "train_cleaned.zip", clean)
