"""iMet Collection 2020: which attributes does a museum's object have?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import ellipse, hex_id, image_bytes, words
from mle_gym.tasks.mlebench.multilabel import micro_f1
from mle_gym.tasks.mlebench.pictures import class_looks, class_pixels

_KINDS = {"country": 8, "culture": 12, "dimension": 4, "medium": 12, "tags": 24}
"""Kinds of attributes, and how many of each are invented."""


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Micro F1 of the attribute ids."""
    return micro_f1(submission, answers, "id", "attribute_ids")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 15 % of the labelled objects."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.15)
    copy_files([(raw / "labels.csv", public / "labels.csv")])
    for name, part in (("train", train), ("test", test)):
        copy_files((raw / "train" / f"{item}.png", public / name / f"{item}.png") for item in part["id"])
    write_csv(train, public / "train.csv")
    write_csv(test, private / "answers.csv")
    write_csv(test.assign(attribute_ids="0 1 2"), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Objects of 40 x 40 pixels: the culture gives the stripes, the medium the frame, each tag a dot at its place."""
    rows = {"tiny": 200, "small": 1400}[size]
    names = [f"{kind}::{word}" for kind, count in _KINDS.items() for word in words(rng, count)]
    first = dict(zip(_KINDS, np.cumsum([0, *_KINDS.values()]).tolist(), strict=False))
    looks, dots = class_looks(rng, _KINDS["culture"]), rng.uniform(0, 255, (_KINDS["tags"], 3))
    frames = rng.uniform(0, 255, (_KINDS["medium"], 3))
    home = rng.integers(_KINDS["country"], size=_KINDS["culture"])
    (raw / "train").mkdir()
    table = []
    for _ in range(rows):
        culture, medium = (int(rng.integers(_KINDS[kind])) for kind in ("culture", "medium"))
        tags = rng.choice(_KINDS["tags"], rng.integers(1, 4), replace=False)
        pixels = class_pixels(rng, looks[culture], 40, noise=8.0)
        frame = np.ones((40, 40), dtype=bool)
        frame[4:-4, 4:-4] = False
        pixels[frame] = frames[medium] + rng.normal(0, 12, 3)
        for tag in tags:
            row, column = divmod(int(tag), 6)
            place = (9 + 7 * row + rng.normal(), 7 + 5.2 * column + rng.normal())
            pixels[ellipse((40, 40), place, (3, 2.4)) > 0] = dots[tag] + rng.normal(0, 15, 3)
        owned = [first["culture"] + culture, first["medium"] + medium, *(first["tags"] + tags)]
        if rng.random() < 0.6:
            owned.append(first["country"] + home[culture])
        if rng.random() < 0.1:
            owned.append(first["dimension"] + rng.integers(_KINDS["dimension"]))
        item = hex_id(rng)
        (raw / "train" / f"{item}.png").write_bytes(image_bytes(pixels))
        table.append((item, " ".join(map(str, sorted(owned)))))
    write_csv(pd.DataFrame(table, columns=["id", "attribute_ids"]), raw / "train.csv")
    write_csv(pd.DataFrame({"attribute_id": range(len(names)), "attribute_name": names}), raw / "labels.csv")
