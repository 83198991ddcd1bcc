"""What a reference solution sees: a task's public folder, read like a program would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.csv_data import CsvTaskData

__all__ = ["Folder", "Reference"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Folder:
    """Train, test and sample submission of a task. The answers are out of reach."""

    path: Path
    train: pd.DataFrame
    test: pd.DataFrame
    sample: pd.DataFrame
    id_column: str
    metric: str

    @classmethod
    def of(cls, data: CsvTaskData) -> Folder:
        """Read a task's public folder."""
        path = data.public_dir
        train, test, sample = (pd.read_csv(path / name) for name in ("train.csv", "test.csv", data.sample_submission))
        return cls(path, train, test, sample, data.rules.id_column, data.rules.metric)

    @property
    def targets(self) -> list[str]:
        """Prediction columns."""
        return [name for name in self.sample.columns if name != self.id_column]

    @property
    def label_column(self) -> str:
        """The column of train.csv to learn from."""
        return next(name for name in self.train.columns if name not in self.test.columns)

    @property
    def labels(self) -> pd.Series[Any]:
        """Training answers."""
        return self.train[self.label_column]

    @property
    def features(self) -> list[str]:
        """Columns of both tables, the id left out."""
        return [name for name in self.test.columns if name != self.id_column]

    def submission(self, predictions: Array) -> pd.DataFrame:
        """A submission; ``predictions`` has shape ``(rows,)`` or ``(rows, targets)`` in the order of test.csv."""
        table = pd.DataFrame({self.id_column: self.test[self.id_column]})
        columns = np.asarray(predictions).reshape(len(table), -1).T
        for name, values in zip(self.targets, columns, strict=True):
            table[name] = values
        return table


@dataclass(frozen=True)
class Reference:
    """One solution: its name and its function from folder and seed to a prediction for each test row."""

    name: str
    predict: Callable[[Folder, int], Array]
    baseline: bool = False
    """Whether its score is the task's median."""
