"""Reading tables as MLE-bench does (pandas, floats to the last bit), from files that nobody has reason to trust."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.grading.submission import read_bytes, show_value

__all__ = ["EXACT", "max_submission_bytes", "read_answers", "read_leaderboard", "read_submission_frame"]

_EXACT_BY_ITSELF = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
EXACT: dict[str, Any] = {} if _EXACT_BY_ITSELF else {"float_precision": "round_trip"}
"""What makes ``pandas.read_csv`` read floats exactly, which it does by itself since 3.1."""

_MAX_COLUMNS = 20_000
_BASE_BYTES = 256 << 20
"""As the sandbox copies out; a submission for all customers of H&M, whose answers are few, has 242 MiB."""


def max_submission_bytes(answers: Path) -> int:
    """Return how large a submission may be: far above any honest one, far below what would fill the memory."""
    return _BASE_BYTES + 16 * answers.stat().st_size


def read_answers(path: Path) -> pd.DataFrame:
    """Read an answers file that we or MLE-bench prepared."""
    frame: pd.DataFrame = pd.read_csv(path, **EXACT)
    return frame


def read_leaderboard(path: Path) -> tuple[float, ...]:
    """Read the scores of a leaderboard as MLE-bench keeps it.

    Raises:
        ValueError: There is no column ``score``, or a cell of it is no number.
    """
    board = read_answers(path)
    if "score" not in board.columns:
        raise ValueError(f"{path} has no column 'score'; expected one row for each team.")
    scores = pd.to_numeric(board["score"], errors="coerce")
    if scores.isna().any():
        raise ValueError(f"{path} row {int(scores.isna().to_numpy().argmax()) + 1} has no number in column 'score'.")
    return tuple(scores.astype(float))


def read_submission_frame(path: Path, max_bytes: int) -> pd.DataFrame:
    """Read a submission.

    An empty file is a frame without columns, as in MLE-bench.

    Raises:
        InvalidSubmission: It cannot be read as a table; one sentence says why.
    """
    name = path.name
    data = read_bytes(path, max_bytes)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidSubmission(f"{name} is UTF-16; expected UTF-8.")
    if (at := data.find(b"\x00")) >= 0:
        raise InvalidSubmission(f"{name} is binary (a zero at byte {at}); expected a CSV file in UTF-8.")
    header = data[: data.find(b"\n") if b"\n" in data else len(data)]
    if header.count(b",") >= _MAX_COLUMNS:
        raise InvalidSubmission(
            f"{name} has {header.count(b',') + 1:,} columns; expected those of the sample submission."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)
            frame: pd.DataFrame = pd.read_csv(io.BytesIO(data), **EXACT)
            return frame
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
    except UnicodeDecodeError as error:
        raise InvalidSubmission(f"{name} is not UTF-8 (byte {error.start}); write it as CSV in UTF-8.") from None
    except (pd.errors.ParserError, ValueError, OverflowError, MemoryError) as error:
        reason = show_value(" ".join(str(error).split()))
        raise InvalidSubmission(f"{name} is not a well-formed CSV file ({reason}).") from None
