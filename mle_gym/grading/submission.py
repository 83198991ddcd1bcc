"""Reading a submission that nobody has reason to trust: a clean table, or one sentence that says what is wrong."""

from __future__ import annotations

import csv
import errno
import io
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.grading.metrics import Prediction

__all__ = ["Column", "read_bytes", "read_submission", "read_table", "show_value"]

_LARGEST = 1e100
"""Larger numbers are refused: their squares and sums would overflow in a metric."""
_ROW_SUM_TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class Column:
    """A prediction column: its name, what it holds and, for labels, the allowed values."""

    name: str
    prediction: Prediction
    labels: tuple[str, ...] = ()


def show_value(value: str) -> str:
    """Quote a value from the file, short and with control characters escaped."""
    return ascii(value) if len(value) <= 40 else ascii(value[:37]) + "..."


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """Read a file that nobody has reason to trust.

    Raises:
        InvalidSubmission: It does not exist, is no regular file (a link, a FIFO, a device), or is too large.
    """
    name = path.name
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for ever.
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise InvalidSubmission(f"{name} does not exist.") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InvalidSubmission(f"{name} is a symbolic link; expected a regular file.") from None
        raise InvalidSubmission(f"{name} cannot be opened: {error.strerror}.") from None
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise InvalidSubmission(f"{name} is not a regular file.")
    with open(fd, "rb") as file:
        if status.st_size > max_bytes:
            raise InvalidSubmission(
                f"{name} is {status.st_size:,} bytes; at most {max_bytes:,} are expected for this task."
            )
        data = file.read(status.st_size + 1)  # Python reserves as much as it is asked for.
    if len(data) > status.st_size:
        raise InvalidSubmission(f"{name} grew while it was read; let the program end before it is graded.")
    return data


def _decode(data: bytes, name: str) -> str:
    if not data.strip():
        raise InvalidSubmission(f"{name} is empty; expected a header and one row for each test id.")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidSubmission(f"{name} is UTF-16; expected UTF-8.")
    if (at := data.find(b"\x00")) >= 0:
        raise InvalidSubmission(f"{name} is binary (a zero at byte {at}); expected a CSV file in UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSubmission(f"{name} is not UTF-8 (byte {error.start}); write it as CSV in UTF-8.") from None


def _rows(text: str, name: str) -> Iterator[list[str]]:
    """Yield the rows of a CSV text, blank lines left out."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InvalidSubmission(
                f"{name} is not a well-formed CSV file at line {reader.line_num}: {error}."
            ) from None
        if row:
            yield row


def _check_header(header: list[str], expected: Sequence[str], name: str) -> None:
    want = ",".join(expected) if len(expected) <= 6 else f"{','.join(expected[:3])},... ({len(expected)} columns)"
    present = set(header)
    for column in expected:
        if column not in present:
            shown = ",".join(show_value(c)[1:-1] for c in header[:5]) + (",..." if len(header) > 5 else "")
            raise InvalidSubmission(
                f"{name} has no column {show_value(column)}; expected {want}, found {show_value(shown)}."
            )
    allowed = set(expected)
    for column in header:
        if column not in allowed:
            hint = " (write it with index=False)" if column in ("", "Unnamed: 0", "index") else ""
            raise InvalidSubmission(f"{name} has an unknown column {show_value(column)}{hint}; expected {want}.")
    if len(header) != len(present):
        twice = next(c for i, c in enumerate(header) if c in header[:i])
        raise InvalidSubmission(f"{name} has column {show_value(twice)} twice; expected {want}.")


def read_table(path: Path, id_column: str, columns: Sequence[str], rows: int, max_bytes: int) -> dict[str, list[str]]:
    """Read a CSV file of known columns as text, in bounded memory.

    Args:
        path: A regular file; links, devices and FIFOs are refused.
        id_column: Named in messages only.
        columns: Exactly these, in any order.
        rows: The file may not have more.
        max_bytes: The file may not be larger.

    Returns:
        Column -> its values in file order.

    Raises:
        InvalidSubmission: One sentence.
    """
    name = path.name
    reader = _rows(_decode(read_bytes(path, max_bytes), name), name)
    header = next(reader, [])
    _check_header(header, columns, name)
    table: list[list[str]] = [[] for _ in header]
    for number, row in enumerate(reader, 1):
        if number > rows:
            raise InvalidSubmission(f"{name} has more than {rows:,} rows; expected one for each test {id_column}.")
        if len(row) != len(header):
            raise InvalidSubmission(f"{name} row {number}: {len(row)} values; expected {len(header)}.")
        for cell, values in zip(row, table, strict=True):
            values.append(cell)
    return dict(zip(header, table, strict=True))


def _positions(found: list[str], ids: Sequence[str], id_column: str, name: str) -> NDArray[np.int64]:
    """Where each row of the file belongs in ``ids``."""
    where = {key: i for i, key in enumerate(ids)}
    seen: dict[str, int] = {}
    positions = np.empty(len(found), dtype=np.int64)
    for i, key in enumerate(found):
        if key not in where:
            raise InvalidSubmission(
                f"{name} column {id_column} row {i + 1}: {show_value(key)} is not a test {id_column}; "
                f"expected the {len(ids):,} ids of the sample submission."
            )
        if key in seen:
            raise InvalidSubmission(
                f"{name} column {id_column} row {i + 1}: {show_value(key)} stood in row {seen[key]} already; "
                "expected every id once."
            )
        seen[key] = i + 1
        positions[i] = where[key]
    if len(found) < len(ids):
        missing = next(key for key in ids if key not in seen)
        raise InvalidSubmission(
            f"{name} column {id_column}: {len(ids) - len(found):,} of {len(ids):,} ids are missing, "
            f"the first is {show_value(missing)}; expected every id once."
        )
    return positions


def _number(text: str) -> float:
    # float() also takes "1_000", which no CSV reader does.
    return float("x" if "_" in text else text)


def _numbers(values: list[str], column: Column, name: str) -> NDArray[np.float64]:
    low, high = {
        Prediction.PROBABILITY: (0.0, 1.0),
        Prediction.CLASS_PROBABILITIES: (0.0, 1.0),
        Prediction.NON_NEGATIVE: (0.0, _LARGEST),
    }.get(column.prediction, (-_LARGEST, _LARGEST))
    expected = "a number in [0, 1]" if high == 1.0 else "a number >= 0" if low == 0.0 else "a finite number"
    out = np.empty(len(values), dtype=np.float64)
    for i, text in enumerate(values):
        try:
            value = _number(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            shown = "an empty cell" if not text.strip() else show_value(text)
            if high == _LARGEST and _LARGEST < abs(value) < float("inf"):
                expected = f"a number of magnitude up to {_LARGEST:g}"
            raise InvalidSubmission(f"{name} column {column.name} row {i + 1}: {shown}; expected {expected}.")
        out[i] = value
    return out


def _labels(values: list[str], column: Column, name: str) -> NDArray[np.int64]:
    index = {label: i for i, label in enumerate(column.labels)}
    integers = all(label.lstrip("-").isdecimal() for label in column.labels)
    out = np.empty(len(values), dtype=np.int64)
    for i, text in enumerate(values):
        key = text
        if key not in index and integers:
            # Integer labels that passed through a float column come back as "3.0".
            try:
                value = _number(text)
                key = str(int(value)) if value.is_integer() else text
            except (ValueError, OverflowError):
                key = text
        if key not in index:
            shown = "an empty cell" if not text.strip() else show_value(text)
            known = ", ".join(column.labels[:6]) + (", ..." if len(column.labels) > 6 else "")
            raise InvalidSubmission(f"{name} column {column.name} row {i + 1}: {shown}; expected one of {known}.")
        out[i] = index[key]
    return out


def read_submission(path: Path, id_column: str, ids: Sequence[str], columns: Sequence[Column]) -> NDArray[Any]:
    """Validate a whole submission and bring its rows into the order of ``ids``.

    Rows and columns may stand in any order; everything else must be exact. Memory and time are bounded by the
    number of ids and columns, whatever the file holds.

    Args:
        path: The file.
        id_column: Name of the id column.
        ids: Every test id, unique.
        columns: The prediction columns.

    Returns:
        For one column shape ``(rows,)``: float64, or label indices (int64). For several ``(rows, columns)``;
        class probabilities come back with rows scaled to sum to exactly 1.

    Raises:
        InvalidSubmission: One sentence: which column, which row (the first below the header is row 1) and what was
            expected.
    """
    name = path.name
    # Room for ids, 17-digit numbers, quotes and carriage returns, several times over.
    longest = max(
        [32, *(len(i) for i in ids), *(len(label) for c in columns for label in c.labels)],
    )
    max_bytes = (1 << 20) + 4 * (len(ids) + 1) * (longest + 4) * (len(columns) + 1)
    table = read_table(path, id_column, (id_column, *(c.name for c in columns)), len(ids), max_bytes)
    positions = _positions(table[id_column], ids, id_column, name)
    arrays: list[NDArray[Any]] = []
    for column in columns:
        read = _labels if column.prediction is Prediction.LABEL else _numbers
        values = read(table[column.name], column, name)
        ordered = np.empty_like(values)
        ordered[positions] = values
        arrays.append(ordered)
    if len(arrays) == 1:
        return arrays[0]
    matrix = np.stack(arrays, axis=1)
    if columns[0].prediction is Prediction.CLASS_PROBABILITIES:
        sums = matrix.sum(axis=1)
        bad = np.abs(sums - 1.0) > _ROW_SUM_TOLERANCE
        if bad.any():
            row = int(np.flatnonzero(bad[positions])[0])
            raise InvalidSubmission(
                f"{name} row {row + 1}: the {len(columns)} class probabilities sum to {sums[positions][row]:.6g}; "
                f"expected 1."
            )
        matrix /= sums[:, None]
    return matrix
