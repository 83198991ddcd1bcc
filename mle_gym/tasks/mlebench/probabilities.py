"""Class probabilities: rules for the sum of a row, log loss with clipping, column-wise ROC AUC, one-hot answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns, require_rows, require_same_ids, row_sums

__all__ = [
    "binary_log_loss",
    "class_log_loss",
    "columns_auc",
    "one_hot",
    "probabilities",
    "require_only",
    "rounds_to_one",
    "scores",
    "sum_is_close",
]

_EPSILON = float(np.finfo(np.float64).eps)


def sum_is_close(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each row sums to 1 within 1.1e-5, shape ``(rows,)``: numpy's relative 1e-5 and 1e-6 on top."""
    ok: NDArray[np.bool_] = np.isclose(values.sum(axis=1), 1.0, atol=1e-6)
    return ok


def rounds_to_one(values: NDArray[np.float64], digits: int) -> NDArray[np.bool_]:
    """Whether each row's sum is 1 after rounding to ``digits`` decimals, shape ``(rows,)``."""
    ok: NDArray[np.bool_] = values.sum(axis=1).round(digits) == 1.0
    return ok


def require_only(submission: pd.DataFrame, columns: Sequence[str]) -> None:
    """Require exactly these columns, in any order.

    Raises:
        InvalidSubmission: One is missing, or there is another.
    """
    require_columns(submission, *columns)
    known = set(columns)
    for column in submission.columns:
        if column not in known:
            shown = ", ".join(columns[:5]) + (f", ... ({len(columns)} in all)" if len(columns) > 5 else "")
            raise InvalidSubmission(f"Column {str(column)[:40]!r} is one too many; expected only {shown}.")


def scores(submission: pd.DataFrame, columns: Sequence[str]) -> NDArray[np.float64]:
    """Return columns of finite numbers, shape ``(rows, columns)``.

    Raises:
        InvalidSubmission: A cell is no finite number.
    """
    return np.column_stack([numbers(submission, column) for column in columns])


def probabilities(submission: pd.DataFrame, columns: Sequence[str]) -> NDArray[np.float64]:
    """Return columns of probabilities, shape ``(rows, columns)``.

    Raises:
        InvalidSubmission: A cell is no number in [0, 1].
    """
    return np.column_stack([numbers(submission, column, low=0.0, high=1.0) for column in columns])


def class_log_loss(
    submission: pd.DataFrame,
    answers: pd.DataFrame,
    id_column: str,
    classes: Sequence[str],
    *,
    digits: int | None = None,
) -> float:
    """Mean over rows of -ln of the true class's probability, which is clipped to [eps, 1 - eps], eps = 2**-52.

    Rows are matched by id. They are not rescaled to a sum of 1 but must have that sum: after rounding to ``digits``
    decimals, or, without them, as :func:`sum_is_close` says.

    Args:
        submission: One column of probabilities for each class.
        answers: One column of 0 and 1 for each class.
        id_column: Names the rows in both.
        classes: Names of the columns.
        digits: Decimals that count in the sum of a row.

    Raises:
        InvalidSubmission: A column or an id is missing, an id stands twice, a cell is no probability, or a row has
            another sum.
    """
    require_columns(submission, id_column, *classes)
    require_rows(submission, len(answers))
    values = probabilities(submission, classes)
    row_sums(values, sum_is_close(values) if digits is None else rounds_to_one(values, digits))
    ordered = probabilities(aligned(submission, answers, id_column), classes).clip(_EPSILON, 1 - _EPSILON)
    truth = answers[list(classes)].to_numpy(dtype=np.float64)
    return float(-(truth * np.log(ordered)).sum(axis=1).mean())


def binary_log_loss(submission: pd.DataFrame, answers: pd.DataFrame, id_column: str, target: str) -> float:
    """Mean over rows of -ln of the probability given to the true side, clipped to [eps, 1 - eps], eps = 2**-52.

    Raises:
        InvalidSubmission: A column or an id is missing, an id stands twice, a cell is no number in [0, 1], or the
            answers hold one class only, where scikit-learn has no log loss.
    """
    require_columns(submission, id_column, target)
    require_same_ids(submission, answers, id_column)
    numbers(submission, target, low=0.0, high=1.0)
    chance = numbers(aligned(submission, answers, id_column), target).clip(_EPSILON, 1 - _EPSILON)
    truth = answers[target].to_numpy(dtype=np.float64)
    if truth.min() == truth.max():
        raise InvalidSubmission(f"The answers hold one value of {target!r} only, so there is no log loss.")
    return float(-(truth * np.log(chance) + (1 - truth) * np.log(1 - chance)).mean())


def columns_auc(truth: NDArray[np.int64], values: NDArray[np.float64], columns: Sequence[str]) -> float:
    """Mean over columns of the area under the ROC curve.

    Args:
        truth: 0 and 1, shape ``(rows, columns)``.
        values: The larger, the more a row is thought to be 1; same shape.
        columns: Names for messages.

    Raises:
        InvalidSubmission: A column of the answers holds one class only, so that it has no ROC curve.
    """
    from sklearn.metrics import roc_auc_score

    for column, labels in zip(columns, truth.T, strict=True):
        if np.unique(labels).size < 2:
            raise InvalidSubmission(f"The answers hold one class of {column!r} only, so there is no ROC curve.")
    return float(np.mean([roc_auc_score(*pair) for pair in zip(truth.T, values.T, strict=True)]))


def one_hot(rows: pd.DataFrame, id_column: str, target: str, classes: Sequence[str]) -> pd.DataFrame:
    """Return the ids and one 0/1 column for each class.

    Raises:
        ValueError: A label is none of the classes.
    """
    labels = rows[target].to_numpy()
    unknown = set(labels) - set(classes)
    if unknown:
        raise ValueError(f"Column {target!r} holds {min(map(str, unknown))!r}, which is none of the known classes.")
    flags = (labels[:, None] == np.array(classes)[None, :]).astype(np.int64)
    table = pd.DataFrame(flags, columns=list(classes), index=rows.index)
    table.insert(0, id_column, rows[id_column])
    return table
