"""What competitions that predict numbers share: lining up predictions and answers, and preparing plain tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import (
    aligned,
    numbers,
    require_columns,
    require_rows,
    require_same_ids,
    say,
)
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv

__all__ = ["matched", "merged", "prepare_table", "rmse", "sorted_alike", "sorted_part"]

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def _floats(answers: pd.DataFrame, column: str) -> NDArray[np.float64]:
    values: NDArray[np.float64] = answers[column].to_numpy(dtype=np.float64)
    return values


def matched(submission: pd.DataFrame, answers: pd.DataFrame, key: str, target: str, **limits: Any) -> Pair:
    """Return true and predicted values, each of shape ``(rows,)``, rows matched by id, every id once.

    Args:
        submission: As read.
        answers: As read.
        key: The id column.
        target: The column of numbers.
        **limits: As :func:`~mle_gym.tasks.mlebench.checks.numbers` takes them.

    Raises:
        InvalidSubmission: A column or an id is missing, an id stands twice, or a cell is no such number.
    """
    require_columns(submission, key, target)
    rows = aligned(submission, answers, key)
    numbers(submission, target, **limits)  # here the first bad row is the file's
    return _floats(answers, target), numbers(rows, target, **limits)


def merged(submission: pd.DataFrame, answers: pd.DataFrame, key: str, target: str) -> tuple[Pair, pd.DataFrame]:
    """Return true and predicted values for each row of the submission, and those rows of the answers.

    Every id must be there, but may be there more than once, and then counts more than once.

    Raises:
        InvalidSubmission: A column or an id is missing, an id is unknown, or a cell is no finite number.
    """
    require_columns(submission, key, target)
    require_same_ids(submission, answers, key)
    predicted = numbers(submission, target)
    rows = answers.iloc[pd.Index(answers[key]).get_indexer(pd.Index(submission[key]))].reset_index(drop=True)
    return (_floats(rows, target), predicted), rows


def _order(keys: pd.Series[Any]) -> NDArray[np.intp]:
    """Positions that sort the keys, empty ones last; equal keys stand as numpy's quicksort leaves them."""
    cells = keys if pd.api.types.is_numeric_dtype(keys.dtype) else keys.astype(object)
    try:
        order: NDArray[np.intp] = cells.reset_index(drop=True).sort_values().index.to_numpy()
    except TypeError:
        known = type(cells.iloc[0])
        row = next(i for i, cell in enumerate(cells.tolist(), 1) if not isinstance(cell, known))
        raise InvalidSubmission(
            f"Column {keys.name!r}, row {row}: {say(cells.iloc[row - 1])} cannot be put in one order with "
            f"{say(cells.iloc[0])} in row 1; expected ids of one kind."
        ) from None
    return order


def sorted_alike(submission: pd.DataFrame, answers: pd.DataFrame, key: str) -> pd.DataFrame:
    """Return the submission's rows in the order of the answers: the row with the n-th smallest key meets its like.

    The keys themselves are never compared; the result has those of the answers.

    Raises:
        InvalidSubmission: The key column is missing or cannot be sorted, or the numbers of rows differ.
    """
    require_columns(submission, key)
    require_rows(submission, len(answers))
    places = np.empty(len(answers), dtype=np.intp)
    places[_order(answers[key])] = _order(submission[key])
    return submission.iloc[places].reset_index(drop=True).assign(**{key: answers[key].to_numpy()})


def sorted_part(
    submission: pd.DataFrame, answers: pd.DataFrame, rows: NDArray[np.bool_], key: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return some rows of the answers, and of the submission those that :func:`sorted_alike` lines up with them."""
    mine = sorted_alike(submission, answers, key)
    return mine[rows].reset_index(drop=True), answers[rows].reset_index(drop=True)


def rmse(pair: Pair) -> float:
    """Root of the mean squared error."""
    from sklearn.metrics import root_mean_squared_error

    return float(root_mean_squared_error(*pair))


def prepare_table(
    raw: Path,
    public: Path,
    private: Path,
    key: str,
    hidden: Sequence[str],
    targets: Sequence[str],
    value: float,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Hold out a tenth of ``train.csv``, and write train, test, answers and sample submission.

    Args:
        raw: Kaggle's files.
        public: For programs.
        private: For answers.
        key: The id column.
        hidden: Columns that the test table lacks.
        targets: Columns of the sample submission beside the id.
        value: What stands in them.

    Returns:
        Training and test rows.
    """
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns=list(hidden)), public / "test.csv")
    write_csv(test, private / "test.csv")
    write_csv(test[[key]].assign(**dict.fromkeys(targets, value)), public / "sample_submission.csv")
    return train, test
