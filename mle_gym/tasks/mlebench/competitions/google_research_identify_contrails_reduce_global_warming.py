"""Google Research - Identify Contrails: which pixels of a satellite image are an aircraft's contrail?"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, split_rows, write_csv
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.rle import encode_runs, read_runs


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Dice coefficient over the pixels of all images together; nan where nothing is set at all."""
    require_columns(submission, "record_id", "encoded_pixels")
    order, _ = same_order(submission, answers, "record_id")
    pixels = (answers["height"] * answers["width"]).to_numpy()
    sizes = np.empty_like(pixels)
    sizes[order] = pixels
    found = read_runs(submission["encoded_pixels"], "encoded_pixels", sizes.tolist(), none="-")
    truth = read_runs(answers["encoded_pixels"], "encoded_pixels", pixels.tolist(), none="-")
    both = sum(found[at].overlap(mask) for at, mask in zip(order, truth, strict=True))
    total = sum(mask.area for mask in (*found, *truth))
    return 2 * both / total if total else float("nan")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out as many training records as there are in the validation set, which is copied as it is."""
    train, test = split_rows(
        json.loads((raw / "train_metadata.json").read_text()),
        test_size=len(json.loads((raw / "validation_metadata.json").read_text())),
    )
    answers = pd.DataFrame([_answer(raw / "train" / record["record_id"]) for record in test])
    masks = ("human_individual_masks", "human_pixel_masks")
    for name, part in (("train", train), ("test", test)):
        kinds = (*(f"band_{band:02}" for band in range(8, 17)), *(masks if name == "train" else ()))
        files = (f"{record['record_id']}/{kind}.npy" for record in part for kind in kinds)
        copy_files((raw / "train" / file, public / name / file) for file in files)
    shutil.copytree(raw / "validation", public / "validation")
    shutil.copyfile(raw / "validation_metadata.json", public / "validation_metadata.json")
    (public / "train_metadata.json").write_text(json.dumps(train))
    write_csv(answers, private / "answers.csv")
    guesses = random.Random(0)
    guess = [guesses.choice(["1 3 10 5", "-"]) for _ in range(len(answers))]
    write_csv(answers.assign(encoded_pixels=guess), public / "sample_submission.csv")


def _answer(record: Path) -> dict[str, object]:
    mask = np.load(record / "human_pixel_masks.npy")
    height, width, _ = np.load(record / "band_08.npy", mmap_mode="r").shape
    runs = encode_runs(mask.T.ravel() == 1)
    return {"record_id": record.name, "encoded_pixels": runs or "-", "height": height, "width": width}


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Smooth clouds in nine bands; contrails are cold thin lines in bands 13 to 15 that drift from frame to frame."""
    side, train, held_out = {"tiny": (12, 56, 24), "small": (16, 74, 30)}[size]
    for name, count in (("train", train), ("validation", held_out)):
        records = [_record(raw / name, rng, side, with_labellers=name == "train") for _ in range(count)]
        (raw / f"{name}_metadata.json").write_text(json.dumps(records))


def _record(folder: Path, rng: np.random.Generator, side: int, *, with_labellers: bool) -> dict[str, object]:
    """Write one record; return what the metadata tell of it."""
    from scipy.ndimage import gaussian_filter

    record = str(rng.integers(10**15, 2**63 - 1))
    (folder / record).mkdir(parents=True)
    frames = 8
    clouds = gaussian_filter(rng.normal(size=(side, side, frames)), (3, 3, 2)) * 60
    lines = np.zeros((side, side, frames), dtype=np.bool_)
    y, x = np.indices((side, side))
    for _ in range(int(rng.integers(0, 3))):
        angle, drift = rng.uniform(0, np.pi), rng.uniform(-0.6, 0.6)
        offset = rng.uniform(-0.3, 0.3) * side
        across = (y - side / 2) * np.cos(angle) - (x - side / 2) * np.sin(angle)
        lines |= np.abs(across[:, :, None] - offset - drift * (np.arange(frames) - 4)) < 0.8
    for band in range(8, 17):
        cold = {13: 4.0, 14: 6.0, 15: 11.0}.get(band, 0.0)
        heat = 285 - 2.5 * (band - 8) + clouds - cold * lines + rng.normal(0, 1.2, clouds.shape)
        np.save(folder / record / f"band_{band:02}.npy", heat.astype(np.float32))
    truth = lines[:, :, 4:5].astype(np.int32)
    np.save(folder / record / "human_pixel_masks.npy", truth)
    if with_labellers:
        views = [truth * (rng.random(truth.shape) < 0.9) for _ in range(4)]
        np.save(folder / record / "human_individual_masks.npy", np.stack(views, axis=-1).astype(np.int32))
    return {
        "record_id": record,
        "row_min": float(rng.uniform(-2e6, 2e6)),
        "row_size": 500.57,
        "col_min": float(rng.uniform(-2e6, 2e6)),
        "col_size": -500.57,
        "timestamp": float(rng.integers(1_550_000_000, 1_600_000_000)),
    }
