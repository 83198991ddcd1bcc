"""Tabular Playground Series - Dec 2021: the kind of forest from measures of the land, made by a generative model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.metrics import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of rows with the right kind."""
    return accuracy(submission, answers, "Id", "Cover_Type")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the rows."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.drop(columns="Cover_Type"), public / "test.csv")
    write_csv(test[["Id"]].assign(Cover_Type=2), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Land whose height, wilderness and soil decide between seven kinds, two of them far more common."""
    rows = {"tiny": 500, "small": 9000}[size]
    elevation = rng.normal(2980, 290, rows)
    measures = {
        "Elevation": elevation,
        "Aspect": rng.uniform(-33, 407, rows),
        "Slope": rng.gamma(4.0, 3.4, rows),
        "Horizontal_Distance_To_Hydrology": rng.normal(270, 225, rows),
        "Vertical_Distance_To_Hydrology": rng.normal(50, 68, rows),
        "Horizontal_Distance_To_Roadways": rng.gamma(1.8, 980, rows),
        "Hillshade_9am": rng.normal(211, 31, rows),
        "Hillshade_Noon": rng.normal(221, 22, rows),
        "Hillshade_3pm": rng.normal(140, 44, rows),
        "Horizontal_Distance_To_Fire_Points": rng.gamma(1.4, 1130, rows),
    }
    frame = pd.DataFrame({"Id": np.arange(rows), **{name: values.astype(int) for name, values in measures.items()}})
    area = rng.integers(0, 4, rows)
    soil = (rng.beta(1.2, 1.2, rows) * 40).astype(int)
    one_hot = {f"Wilderness_Area{k + 1}": (area == k).astype(int) for k in range(4)}
    one_hot |= {f"Soil_Type{k + 1}": ((soil == k) | (rng.random(rows) < 0.01)).astype(int) for k in range(40)}
    height = (elevation - 2980) / 290
    affinity = np.stack(
        [
            1.6 * height + 0.03 * soil,
            1.6 - 0.2 * height,
            -1.8 * height - 0.8 + (area == 2),
            -2.6 * height - 4.0 + (area == 3),
            -0.6 * height - 3.0 + 0.002 * np.abs(measures["Aspect"] - 180),
            -1.9 * height - 1.8 + (soil < 10),
            2.6 * height - 2.6 + (soil > 34),
        ],
        axis=1,
    )
    frame = pd.concat([frame, pd.DataFrame(one_hot)], axis=1)
    frame["Cover_Type"] = (2.0 * affinity + rng.gumbel(0.0, 0.8, affinity.shape)).argmax(axis=1) + 1
    frame.to_csv(raw / "train.csv", index=False)
