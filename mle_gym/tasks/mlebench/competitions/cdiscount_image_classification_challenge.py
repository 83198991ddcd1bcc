"""Cdiscount's Image Classification Challenge: in which of 5,270 categories is a product, by its photos?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import words
from mle_gym.tasks.mlebench.labels import accuracy
from mle_gym.tasks.mlebench.pictures import class_looks, class_photo, mixed_up

_COMMON = 1000010653
"""The category that the sample submission names throughout."""
_EXAMPLES = 100


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of products in the right category."""
    return accuracy(submission, answers, "_id", "category_id", "the number of a category")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the products; the files are too large for the memory, so they are passed through it."""
    import bson

    columns = ("_id", "category_id")
    rows = (tuple(product[name] for name in columns) for product, _ in _products(raw / "train.bson"))
    labels = pd.DataFrame(np.fromiter(rows, dtype=[(name, np.int64) for name in columns]))
    _, test_rows = split_rows(np.arange(len(labels)), test_size=0.1)
    held_out = np.zeros(len(labels), dtype=np.bool_)
    held_out[test_rows] = True
    with (
        (public / "train.bson").open("wb") as train,
        (public / "test.bson").open("wb") as test,
        (public / "train_example.bson").open("wb") as example,
    ):
        last_example = np.flatnonzero(~held_out)[:_EXAMPLES][-1]
        for row, (product, document) in enumerate(_products(raw / "train.bson")):
            if held_out[row]:
                del product["category_id"]
                test.write(bson.encode(product))
                continue
            train.write(document)
            if row <= last_example:
                example.write(document)
    copy_files([(raw / "category_names.csv", public / "category_names.csv")])
    answers = labels[held_out].sort_values("_id")
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(category_id=_COMMON), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Products of one to three striped photos; the category decides colour and stripes."""
    import bson

    rows, classes = {"tiny": (300, 10), "small": (1500, 25)}[size]
    numbers = np.concatenate([[_COMMON], 1000000000 + rng.choice(10_000, classes - 1, replace=False) * 2 + 21])
    category = np.minimum(rng.geometric(2.5 / classes, rows) - 1, classes - 1)
    ids = np.sort(rng.choice(10 * rows, rows, replace=False))
    looks = class_looks(rng, classes)
    shown = mixed_up(rng, category, classes, 0.08)
    with (raw / "train.bson").open("wb") as file, (raw / "train_example.bson").open("wb") as example:
        for row in range(rows):
            photos = [{"picture": class_photo(rng, looks[shown[row]])} for _ in range(rng.choice([1, 1, 2, 3]))]
            number = int(numbers[category[row]])
            document = bson.encode({"_id": int(ids[row]), "category_id": number, "imgs": photos})
            file.write(document)
            if row < _EXAMPLES:
                example.write(document)
    names = [name.upper() for name in words(rng, 2 * classes + 3)]
    levels = [rng.choice(names[-3:], classes), names[:classes], names[classes : 2 * classes]]
    table = pd.DataFrame(
        {"category_id": numbers, **{f"category_level{level + 1}": levels[level] for level in range(3)}}
    )
    write_csv(table.sort_values("category_id"), raw / "category_names.csv")


def _products(path: Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Read the documents of a BSON file one after the other, each with its bytes."""
    import bson

    with path.open("rb") as file:
        while head := file.read(4):
            document = head + file.read(int.from_bytes(head, "little") - 4)
            yield bson.decode(document), document
