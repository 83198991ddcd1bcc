"""Predicted classes: what counts as a label, and the metrics that compare one label per row.

MLE-bench hands columns to scikit-learn as pandas read them. What scikit-learn takes depends on the type of the whole
column, and the functions here keep to that: whole numbers (also booleans and 3.0) or text, never a mix of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, require_columns, require_rows, require_same_ids, say

__all__ = [
    "accuracy",
    "first_token_label",
    "id_pairs",
    "integer_label",
    "labels",
    "macro_f1",
    "parsed_labels",
    "quadratic_kappa",
    "same_share",
    "whole_numbers",
]

_LIMIT = 2.0**63


def _refuse(submission: pd.DataFrame, column: str, row: int, expected: str) -> InvalidSubmission:
    cell = say(submission[column].iloc[row])
    return InvalidSubmission(f"Column {column!r}, row {row + 1}: {cell}; expected {expected}.")


def labels(submission: pd.DataFrame, column: str, expected: str = "a whole number") -> NDArray[Any]:
    """Return a column as scikit-learn takes class labels, shape ``(rows,)``: integers, or text (dtype object).

    Args:
        submission: The frame.
        column: Its column.
        expected: What a cell should be, for the message.

    Raises:
        InvalidSubmission: A cell is empty, a fraction, infinite or beyond 64 bits, or a column mixes text and others.
    """
    cells = submission[column]
    if cells.dtype.kind in "biu":
        values = cells.to_numpy()
        return values.astype(np.int64) if values.dtype.kind == "b" else values
    if cells.dtype.kind == "f":
        numbers = cells.to_numpy(dtype=np.float64)
        with np.errstate(invalid="ignore"):
            bad = ~(np.abs(numbers) < _LIMIT) | (numbers != np.trunc(numbers))
        if bad.any():
            raise _refuse(submission, column, int(np.argmax(bad)), expected)
        return numbers.astype(np.int64)
    values = cells.to_numpy(dtype=object)
    if not (odd := _not_text(values, cells.isna().to_numpy())).any():
        return values
    raise _refuse(submission, column, int(np.argmax(odd)), expected)


def _not_text(values: NDArray[Any], empty: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Cells that keep a column from being text: the empty ones, else those too large for pandas, else all others."""
    if empty.any():
        return empty
    huge = np.array([isinstance(cell, int) and not -_LIMIT <= cell < 2 * _LIMIT for cell in values], dtype=np.bool_)
    return huge if huge.any() else np.array([not isinstance(cell, str) for cell in values], dtype=np.bool_)


def whole_numbers(submission: pd.DataFrame, column: str) -> NDArray[Any]:
    """Return a column of whole numbers as integers, shape ``(rows,)``; 3.0 and True count.

    Raises:
        InvalidSubmission: A cell is anything else.
    """
    values = labels(submission, column)
    if values.dtype == object and len(values):
        odd = pd.to_numeric(submission[column], errors="coerce").isna().to_numpy()
        raise _refuse(submission, column, int(np.argmax(odd)), "a whole number")
    return values


def integer_label(cell: Any) -> int:
    """Cut a cell to an integer as Python's ``int`` does: 3.7 is 3, "3" is 3, "3.7" is an error."""
    return int(cell)


def first_token_label(cell: Any) -> int:
    """Return a whole number, or the first of the whole numbers in a text; a decimal number is an error."""
    return cell if isinstance(cell, int) else int(cell.split()[0])


def parsed_labels(
    submission: pd.DataFrame, column: str, parse: Callable[[Any], int], expected: str
) -> NDArray[np.int64]:
    """Return a column with each cell parsed to an integer, shape ``(rows,)``.

    Args:
        submission: The frame.
        column: Its column.
        parse: Takes a cell as pandas read it.
        expected: What a cell should be, for the message.

    Raises:
        InvalidSubmission: A cell cannot be parsed, or is an integer beyond 64 bits.
    """
    values = np.empty(len(submission), dtype=np.int64)
    for row, cell in enumerate(submission[column].tolist()):
        try:
            values[row] = parse(cell)
        except (AttributeError, IndexError, OverflowError, TypeError, ValueError):
            empty = submission[column].isna().to_numpy()  # which also makes decimals of a column of whole numbers
            raise _refuse(submission, column, int(np.argmax(empty)) if empty.any() else row, expected) from None
    return values


def same_share(truth: NDArray[Any], predicted: NDArray[Any], column: str, expected: str = "a whole number") -> float:
    """Share of rows with the same label, as scikit-learn 1.5 compares them.

    Numbers against text are all different, unless both hold at most two values: then there is no score.

    Args:
        truth: Labels as :func:`labels` returns them, shape ``(rows,)``.
        predicted: The same.
        column: Name of the column, for the message.
        expected: What a cell should be, for the message.

    Raises:
        InvalidSubmission: Two values that are text stand against two that are numbers.
    """
    if (truth.dtype == object) == (predicted.dtype == object):
        return float(np.mean(truth == predicted))
    if len(np.unique(truth)) <= 2 and len(np.unique(predicted)) <= 2:
        raise InvalidSubmission(f"Column {column!r}, row 1: {say(predicted[0])}; expected {expected}.")
    return 0.0


def accuracy(
    submission: pd.DataFrame, answers: pd.DataFrame, id_column: str, target: str, expected: str = "a whole number"
) -> float:
    """Share of rows with the right label, rows matched by id; ``expected`` says what a label is.

    Raises:
        InvalidSubmission: A column or an id is missing, an id stands twice, or a cell is no label.
    """
    require_columns(submission, id_column, target)
    rows = aligned(submission.assign(**{target: labels(submission, target, expected)}), answers, id_column)
    return same_share(labels(answers, target), labels(rows, target), target, expected)


def macro_f1(truth: NDArray[np.int64], predicted: NDArray[np.int64]) -> float:
    """Mean F1 over all classes that stand in the truth or in the predictions, each of shape ``(rows,)``.

    The same as scikit-learn's ``f1_score(average="macro")``, and fast with tens of thousands of classes.
    """
    present, codes = np.unique(np.concatenate([truth, predicted]), return_inverse=True)
    first, second = codes[: len(truth)], codes[len(truth) :]
    hits = np.bincount(first[first == second], minlength=len(present))
    return float(np.mean(2.0 * hits / np.bincount(codes, minlength=len(present))))


def quadratic_kappa(truth: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Cohen's kappa with quadratic weights (Cohen 1968), each of shape ``(rows,)``; nan where it is 0/0.

    As in scikit-learn the distance of two labels is that of their ranks among all labels present, not of their values.
    """
    present, ranks = np.unique(np.concatenate([truth, predicted]), return_inverse=True)
    if len(present) < 2:
        return float("nan")
    first, second = ranks[: len(truth)].astype(np.int64), ranks[len(truth) :].astype(np.int64)
    rows = len(truth)  # all sums are whole numbers, so that a constant prediction scores 0 exactly
    apart = int(np.sum((first - second) ** 2))
    by_chance = rows * int(np.sum(first**2) + np.sum(second**2)) - 2 * int(np.sum(first)) * int(np.sum(second))
    return 1.0 - rows * apart / by_chance


def id_pairs(
    submission: pd.DataFrame, answers: pd.DataFrame, id_column: str
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the row orders that sort both by id, for answers that repeat ids.

    Rows with the same id are paired in the order in which they stand.

    Raises:
        InvalidSubmission: The two do not have the same ids equally often.
    """
    require_rows(submission, len(answers))
    require_same_ids(submission, answers, id_column)
    wanted = answers[id_column].value_counts()
    found = submission[id_column].value_counts().reindex(wanted.index)
    if (odd := (found != wanted).to_numpy()).any():
        at = int(np.argmax(odd))
        raise InvalidSubmission(
            f"Column {id_column!r}: {say(wanted.index[at])} stands in {int(found.iloc[at])} rows; expected "
            f"{int(wanted.iloc[at])}."
        )
    order = [np.argsort(frame[id_column].to_numpy(), kind="stable") for frame in (submission, answers)]
    return order[0], order[1]
