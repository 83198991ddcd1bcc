"""Kuzushiji Recognition: which characters stand where on a page of an old Japanese book?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.boxes import Detections, read_detections
from mle_gym.tasks.mlebench.checks import require_columns, require_rows
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, extract, read_csv, split_rows, write_csv, zip_files
from mle_gym.tasks.mlebench.imitate import image_bytes, write_zip
from mle_gym.tasks.mlebench.metrics import same_order


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """F1 over all pages of points that lie inside of a character's box and name it."""
    require_rows(submission, len(answers))
    require_columns(submission, "image_id", "labels")
    order, _ = same_order(submission, answers, "image_id")
    found = read_detections(submission["labels"], "labels", "label x y", allow_empty=True)
    truth = read_detections(answers["labels"], "labels", "label x y width height", allow_empty=True)
    hits = sum(_hits(found[at], page) for at, page in zip(order, truth, strict=True))
    offered, wanted = (sum(len(page.labels) for page in pages) for pages in (found, truth))
    return 2 * hits / (offered + wanted) if hits else 0.0


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the pages; the perfect submission points at the corners of the boxes, one pixel inside."""
    pages = extract(raw / "train_images.zip", raw / "train")
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    for name, part in (("train", train), ("test", test)):
        files = [f"{page}.jpg" for page in part["image_id"]]
        zip_files(public / f"{name}_images.zip", ((pages / file, file) for file in files))
    copy_files([(raw / "unicode_translation.csv", public / "unicode_translation.csv")])
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.assign(labels="U+003F 1 1 U+FF2F 2 2"), public / "sample_submission.csv")
    write_csv(test.assign(labels=test["labels"].map(_inside)), private / "gold_submission.csv")


def _inside(labels: str) -> str:
    fields = labels.split()
    points = zip(fields[0::5], fields[1::5], fields[2::5], strict=True)
    return " ".join(f"{label} {int(x) + 1} {int(y) + 1}" for label, x, y in points)


def _hits(found: Detections, truth: Detections) -> int:
    """Boxes that get a point: each takes the first that fits and that no box before it took."""
    labels = np.array(found.labels, dtype=object)
    x, y = found.values.T
    free = np.ones(len(labels), dtype=np.bool_)
    for label, (left, top, width, height) in zip(truth.labels, truth.values, strict=True):
        fits = free & (labels == label) & (left < x) & (x < left + width) & (top < y) & (y < top + height)
        if fits.any():
            free[np.argmax(fits)] = False
    return int((~free).sum())


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Yellowed pages with columns of glyphs; each character has a shape of its own, some look alike."""
    pages, side = {"tiny": (250, 80), "small": (500, 112)}[size]
    codes = [f"U+{number:04X}" for number in sorted(rng.choice(np.arange(0x3042, 0x3094), 16, replace=False).tolist())]
    glyphs = rng.random((len(codes), 6, 6)) < 0.45
    glyphs[1::2] = glyphs[::2]
    glyphs[1::2, 1:4, 1:4] = rng.random((len(codes) // 2, 3, 3)) < 0.5
    often = 1.0 / np.arange(1, len(codes) + 1)
    members: dict[str, bytes | str] = {}
    rows = []
    for page in range(pages):
        name = f"umgy{page // 50:03}-{page % 50:03}"
        paper = np.full((side, side, 3), (225.0, 210.0, 180.0)) + rng.normal(0, 9, (side, side, 3))
        labels = []
        for left in range(4, side - 16, 20):
            for top in range(4, side - 18, 18):
                if rng.random() < 0.35:
                    continue
                code = rng.choice(len(codes), p=often / often.sum())
                glyph = np.kron(glyphs[code], np.ones((2, 2)))
                x, y = (int(start + shift) for start, shift in zip((left, top), rng.integers(0, 4, 2), strict=True))
                paper[y : y + 12, x : x + 12] -= (glyph * rng.uniform(110, 160))[:, :, None]
                labels.append(f"{codes[code]} {x} {y} 12 12")
        members[f"{name}.jpg"] = image_bytes(paper, "JPEG", quality=80)
        rows.append((name, " ".join(labels)))
    write_zip(raw / "train_images.zip", members)
    write_csv(pd.DataFrame(rows, columns=["image_id", "labels"]), raw / "train.csv")
    table = pd.DataFrame({"Unicode": codes, "char": [chr(int(code[2:], 16)) for code in codes]})
    write_csv(table, raw / "unicode_translation.csv")
