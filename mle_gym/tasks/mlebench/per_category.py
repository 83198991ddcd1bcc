"""Competitions whose test set is cut from each category: the Herbarium ones and iNaturalist."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import words
from mle_gym.tasks.mlebench.labels import integer_label, macro_f1, parsed_labels
from mle_gym.tasks.mlebench.pictures import class_looks, class_photo, mixed_up

__all__ = [
    "Item",
    "cut_categories",
    "herbarium_answers",
    "herbarium_score",
    "herbarium_sheets",
    "metadata",
    "prepare_herbarium",
    "read_items",
    "write_herbarium",
    "write_metadata",
]

Item = tuple[dict[str, Any], dict[str, Any]]
"""An annotation and its image, as a COCO-style file describes them."""


def herbarium_score(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean F1 over the categories of truth and predictions, rows matched by ``Id``.

    Raises:
        InvalidSubmission: A column or an id is missing, an id stands twice, or a cell is no category.
    """
    require_columns(submission, "Id", "Predicted")
    predicted = parsed_labels(submission, "Predicted", integer_label, "the number of a category")
    rows = aligned(submission.assign(Predicted=predicted), answers, "Id")
    return macro_f1(answers["Predicted"].to_numpy(), rows["Predicted"].to_numpy())


def read_items(path: Path, encoding: str = "utf-8") -> tuple[dict[str, Any], list[Item]]:
    """Read a COCO-style file, in which annotations and images stand in the same order.

    Returns:
        The whole file, and its pairs of annotation and image.
    """
    whole: dict[str, Any] = json.loads(path.read_text(encoding=encoding))
    return whole, list(zip(whole["annotations"], whole["images"], strict=True))


def write_metadata(path: Path, content: Any) -> None:
    """Write JSON with sorted keys, indented, in ASCII."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="ascii") as file:
        json.dump(content, file, indent=4, sort_keys=True)


def metadata(whole: dict[str, Any], items: Iterable[Item]) -> dict[str, Any]:
    """Return a COCO-style file with other pairs of annotation and image."""
    pairs = list(items)
    return {**whole, "annotations": [first for first, _ in pairs], "images": [second for _, second in pairs]}


def cut_categories(items: list[Item], share: float, *, spare_small: bool = True) -> tuple[list[Item], list[Item]]:
    """Cut each category in two.

    Args:
        items: Pairs of annotation and image.
        share: Part of a category's items that is held out.
        spare_small: Leave an only item to the training part, and of two to four hold out the last ones, at least one.

    Returns:
        The training part by category, in order of first appearance, and the shuffled test part.
    """
    categories: dict[Any, list[Item]] = {}
    for item in items:
        categories.setdefault(item[0]["category_id"], []).append(item)
    train: list[Item] = []
    test: list[Item] = []
    for members in categories.values():
        if spare_small and len(members) < 5:
            held_out = max(1, int(len(members) * share)) if len(members) > 1 else 0
            kept, rest = members[: len(members) - held_out], members[len(members) - held_out :]
        else:
            kept, rest = split_rows(members, test_size=share)
        train += kept
        test += rest
    random.Random(0).shuffle(test)
    return train, test


def herbarium_answers(test: list[Item], public: Path, private: Path, constant: int) -> None:
    """Write answers and sample submission; the test images are numbered in their shuffled order."""
    answers = pd.DataFrame({"Id": range(len(test)), "Predicted": [annotation["category_id"] for annotation, _ in test]})
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(Predicted=constant), public / "sample_submission.csv")


def prepare_herbarium(raw: Path, train_folder: Path, public: Path, private: Path, encoding: str = "utf-8") -> None:
    """Hold out 20 % of each species, as in 2020 and 2021.

    Args:
        raw: Kaggle's folder ``train``: images and ``metadata.json``.
        train_folder: Where its new counterpart goes; the test set goes beside it.
        public: For the sample submission.
        private: For the answers.
        encoding: Of Kaggle's metadata.
    """
    whole, items = read_items(raw / "metadata.json", encoding)
    train, test = cut_categories(items, 0.2)
    test_folder = train_folder.parent / "test"
    renamed = [
        {**image, "id": str(row), "file_name": f"images/{row // 1000:03d}/{row}.jpg"}
        for row, (_, image) in enumerate(test)
    ]
    copy_files((raw / image["file_name"], train_folder / image["file_name"]) for _, image in train)
    copy_files(
        (raw / image["file_name"], test_folder / new["file_name"])
        for (_, image), new in zip(test, renamed, strict=True)
    )
    write_metadata(train_folder / "metadata.json", metadata(whole, train))
    write_metadata(
        test_folder / "metadata.json", {"images": renamed, "info": whole["info"], "licenses": whole["licenses"]}
    )
    herbarium_answers(test, public, private, constant=0)


def herbarium_sheets(rng: np.random.Generator, size: Size, species: int) -> list[tuple[int, bytes]]:
    """Invent sheets of herbarium, as pairs of species number and JPEG photo; a few species are rare.

    Args:
        rng: Source of all randomness.
        size: Of the data set.
        species: Numbers go from 0 to this, exclusive; those of the sample submissions are among them.
    """
    common, rows = {"tiny": (10, 15), "small": (30, 50)}[size]
    others = np.setdiff1d(np.arange(species), [0, 42])
    numbers = np.concatenate([[0, 42], rng.choice(others, common + 1, replace=False)])
    counts = np.concatenate([rng.integers(rows // 2, rows * 2, common), [4, 3, 2]])
    wanted = rng.permutation(np.repeat(np.arange(len(numbers)), counts))
    looks = class_looks(rng, len(numbers))
    return [
        (int(numbers[label]), class_photo(rng, looks[shown]))
        for label, shown in zip(wanted, mixed_up(rng, wanted, len(numbers), 0.08), strict=True)
    ]


def write_herbarium(
    folder: Path,
    rng: np.random.Generator,
    size: Size,
    year: int,
    species: int,
    place: tuple[str, str, list[dict[str, Any]]],
    encoding: str = "utf-8",
) -> None:
    """Write invented data of 2020 or 2021 in Kaggle's layout.

    Args:
        folder: Kaggle's folder ``train``.
        rng: Source of all randomness.
        size: Of the data set.
        year: Of the competition.
        species: As for :func:`herbarium_sheets`.
        place: Where a sheet is from: name of the list, key of an annotation, and the list.
        encoding: Of the metadata.
    """
    table, key, places = place
    sheets = herbarium_sheets(rng, size, species)
    ids = rng.permutation(20 * len(sheets))[: len(sheets)]
    pairs: list[Item] = []
    for row, ((category, photo), number) in enumerate(zip(sheets, ids.tolist(), strict=True)):
        name = f"images/{category // 100:03d}/{category % 100:02d}/{number}.jpg"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(photo)
        where = places[int(rng.integers(len(places)))]["id"]
        pairs.append(
            (
                {"category_id": category, "id": row, "image_id": number, key: where},
                {"file_name": name, "height": 32, "id": number, "license": 1, "width": 32},
            )
        )
    present = sorted({category for category, _ in sheets})
    names = words(rng, 2 * len(present))
    whole = {
        "annotations": [],
        "categories": [
            {
                "family": names[2 * row].title(),
                "genus": names[2 * row + 1].title(),
                "id": category,
                "name": f"Sp. n\u00e9e {category}",
            }
            for row, category in enumerate(present)
        ],
        "images": [],
        "info": {"description": "Invented data", "year": year},
        "licenses": [{"id": 1, "name": "none", "url": ""}],
        table: places,
    }
    text = json.dumps(metadata(whole, pairs), ensure_ascii=False)
    (folder / "metadata.json").write_text(text, encoding=encoding)
