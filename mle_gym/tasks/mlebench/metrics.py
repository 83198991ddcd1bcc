"""Metrics that several competitions share, with the checks that go with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import numbers, require_columns, require_rows, require_same_ids, say

__all__ = ["accuracy", "binary_auc", "mean_column_auc", "same_order"]


def same_order(
    submission: pd.DataFrame, answers: pd.DataFrame, column: str
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the order of each frame's rows that lines up their ids, as positions, each of shape ``(rows,)``.

    Both must hold the same ids equally often. Where the answers repeat an id (a comment that was posted twice), which
    of its rows meet is left to numpy's quicksort, as in MLE-bench.

    Raises:
        InvalidSubmission: The numbers of rows or the ids differ.
    """
    require_rows(submission, len(answers))
    found, expected = submission[column], answers[column]
    ids = found.tolist()
    if not (found.is_unique and expected.is_unique):
        allowed, seen = Counter(expected.tolist()), Counter[Hashable]()
        for row, value in enumerate(ids, start=1):
            seen[value] += 1
            if seen[value] > allowed[value] > 0:
                often = "once" if allowed[value] == 1 else f"{allowed[value]} times"
                raise InvalidSubmission(
                    f"Column {column!r}, row {row}: {say(value)} stood there before; expected it {often}."
                )
    require_same_ids(submission, answers, column)
    if expected.is_unique:
        where = {value: row for row, value in enumerate(ids)}
        return np.array([where[value] for value in expected.tolist()], dtype=np.intp), np.arange(len(expected))
    first, second = (part.to_numpy(dtype=object).argsort(kind="quicksort") for part in (found, expected))
    return first, second


def _auc(truth: NDArray[Any], scores: NDArray[np.float64], column: str) -> float:
    from sklearn.metrics import roc_auc_score

    if len(np.unique(truth)) < 2:
        raise InvalidSubmission(f"Column {column!r}: the answers hold one class only, so there is no ROC curve.")
    return float(roc_auc_score(truth, scores))


def mean_column_auc(submission: pd.DataFrame, answers: pd.DataFrame, id_column: str, *targets: str) -> float:
    """Mean over columns of the area under the ROC curve of a column of probabilities, rows matched by id.

    Raises:
        InvalidSubmission: A column or an id is missing, an id stands too often, or a cell is no number in [0, 1].
    """
    require_columns(submission, id_column, *targets)
    found, expected = same_order(submission, answers, id_column)
    scores = [numbers(submission, target, low=0.0, high=1.0)[found] for target in targets]
    truth = [answers[target].to_numpy()[expected] for target in targets]
    return float(np.mean([_auc(*column) for column in zip(truth, scores, targets, strict=True)]))


def binary_auc(submission: pd.DataFrame, answers: pd.DataFrame, id_column: str, target: str) -> float:
    """Area under the ROC curve of one column of probabilities, rows matched by id.

    Raises:
        InvalidSubmission: A column or an id is missing, an id stands too often, or a cell is no number in [0, 1].
    """
    return mean_column_auc(submission, answers, id_column, target)


def accuracy(submission: pd.DataFrame, answers: pd.DataFrame, id_column: str, target: str) -> float:
    """Share of rows whose label equals the answer, rows matched by id.

    Labels are compared as pandas reads them: ``2.0`` equals 2, a label that does not exist is just wrong, and one cell
    of text makes a column of text, of which nothing equals a number.

    Raises:
        InvalidSubmission: A column or an id is missing, an id stands too often, or a cell is no label: empty, infinite
            or a fraction.
    """
    require_columns(submission, id_column, target)
    found, expected = same_order(submission, answers, id_column)
    labels, truth = submission[target], answers[target].to_numpy()[expected]
    numeric = pd.api.types.is_numeric_dtype(labels.dtype)
    bad = labels.isna().to_numpy(copy=True)
    if numeric and labels.dtype.kind == "f":
        values = labels.to_numpy(dtype=np.float64)
        # From 2^63 on scikit-learn takes a float for a fraction.
        bad |= ~(np.isfinite(values) & (np.abs(values) < 2.0**63)) | (np.trunc(values) != values)
    if not numeric:
        text = np.array([isinstance(label, str) for label in labels], dtype=np.bool_)
        if not text.all():  # scikit-learn refuses text beside numbers; pandas reads such columns from large files
            bad |= text
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InvalidSubmission(
            f"Column {target!r}, row {row + 1}: {say(labels.iloc[row])}; expected a label, like {say(truth[0])}."
        )
    if not numeric:
        if labels.nunique() <= 2 and len(np.unique(truth)) <= 2 and not isinstance(truth[0], str):
            raise InvalidSubmission(
                f"Column {target!r}, row 1: {say(labels.iloc[0])}; expected a number, like {say(truth[0])}, and the "
                "test set has no third label with which text would count as merely wrong."
            )
        labels = labels.astype(str).astype(object)  # integers beyond 64 bits, too, were text to older pandas
    return float(np.mean(labels.to_numpy()[found] == truth))
