"""Tabular Playground Series - May 2022: the state of a made-up machine from 31 features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.metrics import binary_auc

_TEST_ROWS = 100_000


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Area under the ROC curve."""
    return binary_auc(submission, answers, "id", "target")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 100,000 rows, of fewer rows a ninth, and number the rows anew."""
    rows = read_csv(raw / "train.csv")
    train, test = split_rows(rows, test_size=_TEST_ROWS if len(rows) > _TEST_ROWS else 1 / 9)
    train = train.assign(id=np.arange(len(train)))
    test = test.assign(id=np.arange(len(train), len(rows)))
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.drop(columns="target"), public / "test.csv")
    gold = test[["id", "target"]]
    write_csv(gold, private / "gold_submission.csv")
    write_csv(gold.assign(target=0.5), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Floats, counts and a ten-letter code; the target hangs on sums, a product and a letter of the code."""
    rows = {"tiny": 600, "small": 9000}[size]
    frame = pd.DataFrame({"id": np.arange(rows)})
    values: NDArray[Any]
    for number in range(31):
        if 7 <= number <= 18:
            values = rng.poisson(rng.uniform(1.5, 3.0), rows)
        elif number == 27:
            letters = np.array(list("ABCDEFGHIJKLMNOPQRST"))
            code = rng.integers(0, [2, 15, 2, 15, 15, 2, 15, 20, 2, 20], (rows, 10))
            values = np.array(["".join(row) for row in letters[code]])
        elif number >= 29:
            values = rng.choice(number - 27, rows, p=[0.66, 0.34] if number == 29 else [0.33, 0.32, 0.35])
        else:
            values = rng.normal(0.0, 200.0 if number == 28 else 1.0, rows)
        frame[f"f_{number:02d}"] = values
    signal = (
        1.2 * np.sign(frame["f_02"] + frame["f_21"])
        + frame["f_00"] * frame["f_26"]
        + 0.4 * (frame["f_08"] - frame["f_11"])
        + 0.8 * frame["f_30"]
        + 0.25 * (code[:, 7] - 9.5)
    )
    noisy = signal + rng.logistic(0.0, 0.7, rows)
    frame["target"] = (noisy > noisy.median()).astype(int)
    frame.to_csv(raw / "train.csv", index=False)
