"""Herbarium 2022: of which of 15,501 species is the dried plant on a herbarium sheet?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files
from mle_gym.tasks.mlebench.imitate import words
from mle_gym.tasks.mlebench.per_category import (
    cut_categories,
    herbarium_answers,
    herbarium_score,
    herbarium_sheets,
    metadata,
    read_items,
    write_metadata,
)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean F1 over species."""
    return herbarium_score(submission, answers)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 20 % of each species; what is left of a species is numbered anew."""
    whole, items = read_items(raw / "train_metadata.json")
    train, test = cut_categories(items, 0.2, spare_small=False)
    photos = raw / "train_images"
    numbers = _Numbers()
    renamed = []
    for annotation, image in train:
        name = numbers.next(annotation["category_id"])
        new = {**image, **name}
        copy_files([(photos / image["file_name"], public / "train_images" / new["file_name"])])
        renamed.append(({**annotation, "image_id": new["image_id"]}, new))
    write_metadata(public / "train_metadata.json", metadata(whole, renamed))
    shown = [
        {**image, "image_id": str(row), "file_name": f"{row // 1000:03d}/test-{row:06d}.jpg"}
        for row, (_, image) in enumerate(test)
    ]
    copy_files(
        (photos / image["file_name"], public / "test_images" / new["file_name"])
        for (_, image), new in zip(test, shown, strict=True)
    )
    write_metadata(public / "test_metadata.json", shown)
    herbarium_answers(test, public, private, constant=42)


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Striped sheets; the species decides colour and stripes."""
    numbers = _Numbers()
    pairs = []
    sheets = herbarium_sheets(rng, size, 15_501)
    for row, (species, photo) in enumerate(sheets):
        name = numbers.next(species)
        path = raw / "train_images" / name["file_name"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(photo)
        annotation = {
            "genus_id": species // 6,
            "institution_id": int(rng.integers(5)),
            "category_id": species,
            "image_id": name["image_id"],
        }
        pairs.append((annotation, {**name, "license": row % 3}))
    present = sorted({species for species, _ in sheets})
    names = words(rng, 3 * len(present))
    fields = ("family", "genus", "species")
    whole: dict[str, Any] = {
        "annotations": [],
        "images": [],
        "categories": [
            {"category_id": species, **dict(zip(fields, names[3 * row : 3 * row + 3], strict=True))}
            for row, species in enumerate(present)
        ],
        "genera": [{"genus_id": genus, "genus": f"Genus {genus}"} for genus in sorted({s // 6 for s in present})],
        "institutions": [{"institution_id": number, "collectionCode": f"H{number}"} for number in range(5)],
        "distances": [],
        "license": [{"id": number, "name": f"Licence {number}", "url": ""} for number in range(3)],
    }
    write_metadata(raw / "train_metadata.json", metadata(whole, pairs))


class _Numbers:
    """Hands out the photos' names, which count up within each species."""

    def __init__(self) -> None:
        self._seen: Counter[int] = Counter()

    def next(self, species: int) -> dict[str, str]:
        """Return id and file name of a species' next photo."""
        self._seen[species] += 1
        name = f"{species:05d}__{self._seen[species]:03d}"
        return {"image_id": name, "file_name": f"{species // 100:03d}/{species % 100:02d}/{name}.jpg"}
