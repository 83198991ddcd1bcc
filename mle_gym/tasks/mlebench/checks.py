"""Checks that many graders share; each raises one sentence: which column, which row (from 1), what was expected."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.grading.submission import show_value

__all__ = ["aligned", "numbers", "require_columns", "require_rows", "require_same_ids", "row_sums", "say", "text_cells"]


def say(value: object) -> str:
    """Quote a cell for a message."""
    if value is None or (isinstance(value, float) and math.isnan(value)) or value is pd.NA:
        return "an empty cell"
    return show_value(str(value))


def require_columns(submission: pd.DataFrame, *columns: str, exact: bool = False) -> None:
    """Require columns; with ``exact`` no others and in this order.

    Raises:
        InvalidSubmission: One is missing, or there are others.
    """
    if not len(submission.columns):
        raise InvalidSubmission(
            f"The submission is empty; expected a header with {columns[0]!r} and one row for each id."
        )
    found = [str(c) for c in submission.columns]
    shown = ", ".join(show_value(c)[1:-1] for c in found[:5]) + (", ..." if len(found) > 5 else "") or "none"
    for column in columns:
        if column not in submission.columns:
            raise InvalidSubmission(f"The submission has no column {column!r}; it has {shown}.")
    if exact and found != list(columns):
        at = next((i for i, pair in enumerate(zip(found, columns, strict=False)) if pair[0] != pair[1]), len(columns))
        expected = repr(columns[at]) if at < len(columns) else "no more columns"
        raise InvalidSubmission(
            f"Column {at + 1} of the submission is {show_value(found[at])}; expected {expected}, since the columns and "
            "their order must be those of the sample submission."
        )


def require_rows(submission: pd.DataFrame, rows: int) -> None:
    """Require a number of rows.

    Raises:
        InvalidSubmission: There are more or fewer.
    """
    if len(submission) != rows:
        raise InvalidSubmission(
            f"The submission has {len(submission):,} rows; expected {rows:,}, one for each test row."
        )


def require_same_ids(submission: pd.DataFrame, answers: pd.DataFrame, column: str) -> None:
    """Require that both have the same set of values in a column.

    Raises:
        InvalidSubmission: One has a value that the other lacks; the first is named.
    """
    found: Sequence[Hashable] = submission[column].tolist()
    expected: Sequence[Hashable] = answers[column].tolist()
    known = set(expected)
    for row, value in enumerate(found, start=1):
        if value not in known:
            if isinstance(value, str) and not any(isinstance(known_value, str) for known_value in known):
                row, value = _first_text(found)
            raise InvalidSubmission(
                f"Column {column!r}, row {row}: {say(value)} is not an id of the test set; expected the "
                f"{len(known):,} ids of the sample submission."
            )
    if len(set(found)) < len(known):
        have = set(found)
        missing = next(value for value in expected if value not in have)
        raise InvalidSubmission(
            f"Column {column!r}: {len(known) - len(have):,} of {len(known):,} ids are missing, "
            f"the first is {say(missing)}."
        )


def _first_text(cells: Sequence[Any]) -> tuple[int, Hashable]:
    """Return row and value of the cell that made pandas read a column of numbers as text."""
    text = pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce").isna().to_numpy()
    row = int(np.argmax(text))
    return row + 1, cells[row]


def aligned(submission: pd.DataFrame, answers: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the submission's rows in the order of the answers.

    Raises:
        InvalidSubmission: The ids of the two differ, or the submission repeats one.
    """
    require_rows(submission, len(answers))
    found, expected = submission[column], answers[column]
    if found.dtype == expected.dtype and found.is_unique and expected.is_unique:
        if found.equals(expected):
            return submission.reset_index(drop=True)
        places = pd.Index(found).get_indexer(pd.Index(expected))
        if (places >= 0).all():
            rows: pd.DataFrame = submission.iloc[places].reset_index(drop=True)
            return rows
    require_same_ids(submission, answers, column)
    again = submission[column].duplicated().to_numpy()
    if again.any():
        row = int(np.flatnonzero(again)[0])
        raise InvalidSubmission(
            f"Column {column!r}, row {row + 1}: {say(submission[column].iloc[row])} stood there before; "
            "expected every id once."
        )
    return submission.set_index(column, drop=False).loc[answers[column].tolist()].reset_index(drop=True)


def numbers(
    submission: pd.DataFrame,
    column: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    allow_nan: bool = False,
    allow_inf: bool = False,
) -> NDArray[np.float64]:
    """Return a column as float64, shape ``(rows,)``.

    A column counts as numbers when pandas reads it as such; a column of booleans does too.

    Raises:
        InvalidSubmission: A cell is not a number in [``low``, ``high``].
    """
    cells = submission[column]
    expected = "a number" if (low, high) == (-math.inf, math.inf) else f"a number in [{low:g}, {high:g}]"
    if high == math.inf and low > -math.inf:
        expected = f"a number >= {low:g}"
    values = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    bad = np.isnan(values) & (~cells.isna().to_numpy() | (not allow_nan))
    with np.errstate(invalid="ignore"):
        bad |= (values < low) | (values > high)
    if not allow_inf:
        bad |= np.isinf(values)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InvalidSubmission(f"Column {column!r}, row {row + 1}: {say(cells.iloc[row])}; expected {expected}.")
    return values


def text_cells(submission: pd.DataFrame, column: str, *, empty: bool = False) -> list[str]:
    """Return a column of text, shape ``(rows,)``; with ``empty`` an empty cell is "".

    Raises:
        InvalidSubmission: A cell holds no text.
    """
    cells: list[Any] = submission[column].tolist()
    for row, value in enumerate(cells):
        if not isinstance(value, str):
            if empty and say(value) == "an empty cell":
                cells[row] = ""
                continue
            raise InvalidSubmission(f"Column {column!r}, row {row + 1}: {say(value)}; expected text.")
    return cells


def row_sums(values: NDArray[np.float64], ok: NDArray[np.bool_], what: str = "the probabilities of a row") -> None:
    """Refuse the first row that is not ok.

    Args:
        values: Shape ``(rows, columns)``.
        ok: Shape ``(rows,)``.
        what: Subject of the sentence.

    Raises:
        InvalidSubmission: A row is not ok.
    """
    if not ok.all():
        row = int(np.flatnonzero(~ok)[0])
        raise InvalidSubmission(f"Row {row + 1}: {what} sum to {values[row].sum():.6g}; expected 1.")
