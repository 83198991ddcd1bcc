"""UW-Madison GI Tract Image Segmentation: where are stomach and bowels in slices of an MRI scan?"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.frames import read_answers as read_table
from mle_gym.tasks.mlebench.imitate import ellipse
from mle_gym.tasks.mlebench.rle import Runs, dice, encode_runs, read_runs

_Shape = tuple[int, int]
_Slice = tuple[_Shape, list[Runs]]
_Scan = list[_Slice]


def read_answers(path: Path) -> pd.DataFrame:
    """The answers with a column for the patient, who is kept whole by the reward firewall."""
    answers = read_table(path)
    return answers.assign(case=answers["id"].str.split("_").str[0])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Weigh the rows' mean Dice, 0.4, and one minus the scans' mean Hausdorff distance, 0.6."""
    require_columns(submission, "id", "class", "predicted")
    height, width = (answers[f"image_{side}"].astype(int) for side in ("height", "width"))
    shapes: list[_Shape] = list(zip(height.tolist(), width.tolist(), strict=True))
    pixels = (height * width).tolist()
    found = read_runs(submission["predicted"], "predicted", pixels, allow_empty=True)
    truth = read_runs(answers["predicted"], "predicted", pixels, allow_empty=True)
    overlaps = [dice(mask, organ, np.nan) for mask, organ in zip(found, truth, strict=False)]
    scans = _scans(submission["id"].tolist(), found, shapes)
    true_scans = _scans(answers["id"].tolist(), truth, shapes)
    distances = [_hausdorff(_voxels(scan), _voxels(true)) for scan, true in zip(scans, true_scans, strict=False)]
    return 0.4 * _mean(overlaps) + 0.6 * (1 - _mean(distances))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the patients, and of the others all days after the fourth."""
    rows = read_csv(raw / "train.csv")
    case, day = (rows["id"].str.split("_").str[part] for part in (0, 1))
    _, held_out = split_rows(case.unique().tolist(), test_size=0.1, random_state=42)
    nth_day = day.str.removeprefix("day").astype(int).groupby(case).rank(method="dense")
    is_test = case.isin(held_out) | (nth_day > 4)
    moved = set((case + "_" + day)[is_test])
    for patient in case.unique():
        for scan in sorted((raw / "train" / patient).iterdir()):
            to_test = patient in held_out or scan.name in moved
            shutil.copytree(scan, public / ("test" if to_test else "train") / patient / scan.name)
    train, test = rows[~is_test], rows[is_test].rename(columns={"segmentation": "predicted"})
    write_csv(train, public / "train.csv")
    write_csv(test.assign(predicted="1 1 5 2"), public / "sample_submission.csv")
    write_csv(test[["id", "class"]], public / "test.csv")
    shapes = {}
    for scan in moved:
        for image in (raw / "train" / scan.split("_")[0] / scan / "scans").glob("slice_*.png"):
            _, number, width, height = image.stem.split("_")[:4]
            shapes[f"{scan}_slice_{number}"] = float(width), float(height)
    sides = pd.DataFrame([shapes[name] for name in test["id"]], test.index, ["image_width", "image_height"])
    write_csv(pd.concat([test, sides], axis=1), private / "test.csv")


def _mean(values: list[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan


def _scans(ids: list[object], masks: list[Runs], shapes: list[_Shape]) -> list[_Scan]:
    """Slices of each scan, with their masks; scans and slices in the order of their ids."""
    slices: dict[str, _Slice] = {}
    scans: dict[str, _Scan] = {}
    for row, (name, mask, shape) in enumerate(zip(ids, masks, shapes, strict=False), start=1):
        if not isinstance(name, str):
            raise InvalidSubmission(
                f"Column 'id', row {row}: {say(name)}; expected text, like 'case1_day2_slice_0003'."
            )
        slices.setdefault(name, (shape, []))[1].append(mask)
        first = scans.setdefault(name.split("_slice_")[0], [slices[name]])[0]
        if first[0] != shape:
            here, there = (f"{height} x {width}" for height, width in (shape, first[0]))
            raise InvalidSubmission(
                f"Column 'id', row {row}: {say(name)} stands where the test set has an image of {here} pixels, but its "
                f"scan began at one of {there}; expected the order of the sample submission."
            )
    scans = {}
    for name in sorted(slices):
        scans.setdefault(name.split("_slice_")[0], []).append(slices[name])
    return list(scans.values())


def _voxels(scan: _Scan) -> NDArray[np.bool_]:
    """Stack the slices, the classes joined, shape (slices, height, width)."""
    shape = scan[0][0]
    voxels = np.zeros((len(scan), shape[0] * shape[1]), dtype=np.bool_)
    for pixels, (_, masks) in zip(voxels, scan, strict=True):
        for mask in masks:
            if len(mask.starts):
                pixels |= mask.mask(len(pixels))
    return voxels.reshape(len(scan), *shape[::-1]).swapaxes(1, 2)


def _hausdorff(found: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    """Hausdorff distance in a unit cube, by its diagonal; nan where neither has a voxel."""
    from scipy.ndimage import binary_erosion, find_objects
    from scipy.spatial import KDTree

    size, true_size = int(found.sum()), int(truth.sum())
    if not size and not true_size:
        return np.nan
    if not size or not true_size:
        return 1.0
    if np.array_equal(found, truth):
        return 0.0
    if size > 10 * true_size:
        return 1.0
    shape, farthest = truth.shape, 0.0
    if found.shape == truth.shape:
        (place,) = find_objects((found | truth).astype(np.int8))
        found, truth = found[place], truth[place]
    for mine, other in ((truth, found), (found, truth)):
        alone = mine
        if mine.shape == other.shape:
            # What both have is at distance 0, and the nearest voxel of a body seen from outside is on its surface.
            alone, other = mine & ~other, other & ~binary_erosion(other, border_value=True)
        if alone.any():
            tree = KDTree(np.argwhere(other) / shape)
            farthest = max(farthest, float(tree.query(np.argwhere(alone) / shape)[0].max()))
    return farthest / float(np.sqrt(3))


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Grey bodies; the stomach is bright, the large bowel a dark ring, the small bowel speckled."""
    from PIL import Image

    cases, slices, side = {"tiny": (20, 5, 32), "small": (40, 8, 44)}[size]
    rows = []
    for case in sorted(rng.choice(np.arange(1, 157), cases, replace=False).tolist()):
        shape = (side, side + int(rng.integers(0, 3)) * 4)
        where = np.array([(0.35, 0.35), (0.6, 0.55), (0.55, 0.5)]) + rng.uniform(-0.04, 0.04, (3, 2))
        for day in sorted(rng.choice(40, int(rng.integers(2, 7)), replace=False).tolist()):
            scan = f"case{case}_day{day}"
            folder = raw / "train" / f"case{case}" / scan / "scans"
            folder.mkdir(parents=True)
            for number in range(1, slices + 1):
                organs, pixels = _slice(rng, shape, where, number / slices)
                name = f"slice_{number:04}_{shape[1]}_{shape[0]}_1.50_1.50.png"
                Image.fromarray(pixels.clip(0, 65535).astype(np.uint16)).save(folder / name)
                for organ in ("large_bowel", "small_bowel", "stomach"):
                    runs = encode_runs(organs[organ].ravel()) if organ in organs else ""
                    rows.append((f"{scan}_slice_{number:04}", organ, runs))
    write_csv(pd.DataFrame(rows, columns=["id", "class", "segmentation"]), raw / "train.csv")


def _slice(
    rng: np.random.Generator, shape: _Shape, where: NDArray[np.float64], height: float
) -> tuple[dict[str, NDArray[np.bool_]], NDArray[np.float64]]:
    """The organs that a slice at a height from 0 to 1 shows, and its pixels."""
    low, high = min(shape), max(shape)
    body = ellipse(shape, (shape[0] / 2, shape[1] / 2), (low * 0.48, high * 0.48)) > 0
    pixels = np.where(body, 900.0, 40.0)
    middles = (where + rng.uniform(-0.02, 0.02, where.shape)) * shape
    stomach, small, large = (
        ellipse(shape, (y, x), (low * radius, low * radius * 1.2))
        for (y, x), radius in zip(middles, (0.16, 0.14, 0.26), strict=True)
    )
    organs: dict[str, NDArray[np.bool_]] = {}
    if height < 0.5:
        organs["stomach"] = stomach > 0
    if height > 0.3:
        organs["large_bowel"] = (large > 0) & (large < 0.3)
        organs["small_bowel"] = small > 0
    for organ, seen in organs.items():
        speckles = rng.choice([500.0, 1500.0], shape) if organ == "small_bowel" else 0.0
        pixels = np.where(seen, {"stomach": 1500.0, "large_bowel": 500.0, "small_bowel": 0.0}[organ] + speckles, pixels)
    return organs, pixels + rng.normal(0, 130, shape)
