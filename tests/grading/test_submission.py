"""Any file at all is a clean table or one sentence."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.grading.metrics import Prediction
from mle_gym.grading.submission import Column, read_submission

IDS = ("a", "b", "c")
SCORE = (Column("y", Prediction.SCORE),)
PROBABILITY = (Column("y", Prediction.PROBABILITY),)
COUNT = (Column("y", Prediction.NON_NEGATIVE),)
LABEL = (Column("y", Prediction.LABEL, ("0", "1", "2")),)
NAME = (Column("y", Prediction.LABEL, ("cat", "dog")),)
CLASSES = tuple(Column(name, Prediction.CLASS_PROBABILITIES) for name in ("p", "q"))


def read(tmp_path: Path, data: str | bytes, columns: tuple[Column, ...] = SCORE) -> np.ndarray:
    path = tmp_path / "submission.csv"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_submission(path, "id", IDS, columns)


@pytest.mark.parametrize(
    ("data", "columns", "expected"),
    [
        ("id,y\na,1\nb,2.5\nc,-3e2\n", SCORE, [1.0, 2.5, -300.0]),
        ("id,y\r\nc,3\r\na,1\r\nb,2\r\n", SCORE, [1, 2, 3]),
        ("y,id\n1,a\n3,c\n2,b", SCORE, [1, 2, 3]),
        ("\ufeffid,y\na,1\n\nb, 2\nc,3\n\n", SCORE, [1, 2, 3]),
        ('"id","y"\n"a","1"\n"b","2"\n"c","3"\n', SCORE, [1, 2, 3]),
        ("id,y\na,0\nb,1\nc,0.5\n", PROBABILITY, [0, 1, 0.5]),
        ("id,y\na,0\nb,1.0\nc,2\n", LABEL, [0, 1, 2]),
        ("id,y\na,dog\nb,cat\nc,dog\n", NAME, [1, 0, 1]),
        ("id,q,p\nb,1,0\na,0.25,0.75\nc,0.5,0.5\n", CLASSES, [[0.75, 0.25], [0, 1], [0.5, 0.5]]),
        # Rounded probabilities are scaled, here by 1 / 0.999.
        ("id,p,q\na,0.333,0.666\nb,1,0\nc,0,1\n", CLASSES, [[1 / 3, 2 / 3], [1, 0], [0, 1]]),
    ],
)
def test_valid(tmp_path: Path, data: str, columns: tuple[Column, ...], expected: list[float]) -> None:
    assert read(tmp_path, data, columns) == pytest.approx(np.array(expected, dtype=float), abs=1e-15)


@pytest.mark.parametrize(
    ("data", "columns", "sentence"),
    [
        ("", SCORE, "is empty"),
        ("\n \n", SCORE, "is empty"),
        ("\x00\x01\x02", SCORE, "is binary"),
        ("id,y\na,1\nb,2\nc,3\n".encode("utf-16"), SCORE, "is UTF-16; expected UTF-8"),
        ("id,y\na,1\nb,2\nc,é\n".encode("latin-1"), SCORE, "is not UTF-8 (byte 15)"),
        ("id,y\n", SCORE, "column id: 3 of 3 ids are missing, the first is 'a'"),
        ("id,y\na,1\nc,3\n", SCORE, "column id: 1 of 3 ids are missing, the first is 'b'"),
        ("id,y\na,1\nb,2\nb,3\n", SCORE, "column id row 3: 'b' stood in row 2 already"),
        ("id,y\na,1\nb,2\nd,3\n", SCORE, "column id row 3: 'd' is not a test id"),
        ("id,y\na,1\nb,2\nc,3\na,1\n", SCORE, "more than 3 rows"),
        ("id,z\na,1\nb,2\nc,3\n", SCORE, "has no column 'y'; expected id,y, found 'id,z'"),
        ("y\n1\n2\n3\n", SCORE, "has no column 'id'"),
        ("id;y\na;1\nb;2\nc;3\n", SCORE, "has no column 'id'; expected id,y, found 'id;y'"),
        (",id,y\n0,a,1\n1,b,2\n2,c,3\n", SCORE, "unknown column '' (write it with index=False)"),
        ("id,y,z\na,1,1\nb,2,1\nc,3,1\n", SCORE, "unknown column 'z'"),
        ("id,y,y\na,1,1\nb,2,1\nc,3,1\n", SCORE, "column 'y' twice"),
        ("id,y\na,1\nb\nc,3\n", SCORE, "row 2: 1 values; expected 2"),
        ("id,y\na,1\nb,2,3\nc,3\n", SCORE, "row 2: 3 values; expected 2"),
        ("id,y\na,1\nb,nan\nc,3\n", SCORE, "column y row 2: 'nan'; expected a finite number"),
        ("id,y\na,1\nb,\nc,3\n", SCORE, "column y row 2: an empty cell; expected a finite number"),
        ("id,y\na,inf\nb,1\nc,3\n", SCORE, "column y row 1: 'inf'; expected a finite number"),
        ("id,y\na,1e101\nb,1\nc,3\n", SCORE, "column y row 1: '1e101'; expected a number of magnitude up to 1e+100"),
        ("id,y\na,1_0\nb,1\nc,3\n", SCORE, "column y row 1: '1_0'; expected a finite number"),
        ("id,y\na,one\nb,1\nc,3\n", SCORE, "column y row 1: 'one'; expected a finite number"),
        ("id,y\na,1\nb,1.5\nc,0\n", PROBABILITY, "column y row 2: '1.5'; expected a number in [0, 1]"),
        ("id,y\na,1\nb,-1e-9\nc,0\n", PROBABILITY, "column y row 2: '-1e-9'; expected a number in [0, 1]"),
        ("id,y\na,1\nb,-2\nc,0\n", COUNT, "column y row 2: '-2'; expected a number >= 0"),
        ("id,y\na,1\nb,3\nc,0\n", LABEL, "column y row 2: '3'; expected one of 0, 1, 2"),
        ("id,y\na,1\nb,0.5\nc,0\n", LABEL, "column y row 2: '0.5'; expected one of 0, 1, 2"),
        ("id,y\na,1\nb,inf\nc,0\n", LABEL, "column y row 2: 'inf'; expected one of 0, 1, 2"),
        ("id,y\na,dog\nb,Dog\nc,cat\n", NAME, "column y row 2: 'Dog'; expected one of cat, dog"),
        ("id,p,q\nc,0,1\nb,0.5,0.2\na,1,0\n", CLASSES, "row 2: the 2 class probabilities sum to 0.7; expected 1"),
        ('id,y\na,"1\nb,2\nc,3\n', SCORE, "not a well-formed CSV file at line"),
        ('id,y\na,"1"x\nb,2\nc,3\n', SCORE, "not a well-formed CSV file at line 2"),
        ("id,y\na,\u202e1\x1b[31m\nb,2\nc,3\n", SCORE, r"column y row 1: '\u202e1\x1b[31m'; expected a finite number"),
    ],
)
def test_invalid(tmp_path: Path, data: str | bytes, columns: tuple[Column, ...], sentence: str) -> None:
    with pytest.raises(InvalidSubmission) as caught:
        read(tmp_path, data, columns)
    message = str(caught.value)
    assert sentence in message
    assert message.startswith("submission.csv")
    assert message.endswith(".")
    assert "\n" not in message


def test_only_regular_files(tmp_path: Path) -> None:
    real, link, pipe = tmp_path / "real.csv", tmp_path / "link.csv", tmp_path / "pipe.csv"
    real.write_text("id,y\na,1\nb,2\nc,3\n")
    link.symlink_to(real)
    os.mkfifo(pipe)
    for path, message in (
        (link, "is a symbolic link"),
        (pipe, "is not a regular file"),
        (tmp_path, "is not a regular file"),
        (Path("/dev/zero"), "is not a regular file"),
        (tmp_path / "none.csv", "does not exist"),
        (real / "below.csv", "cannot be opened"),
    ):
        with pytest.raises(InvalidSubmission, match=message):
            read_submission(path, "id", IDS, SCORE)


@pytest.mark.parametrize("size", [1 << 20, 1 << 40])
def test_a_huge_file_is_refused_unread(tmp_path: Path, size: int) -> None:
    path = tmp_path / "submission.csv"
    with path.open("wb") as file:
        file.truncate(size + 4096)
    start = time.perf_counter()
    with pytest.raises(InvalidSubmission, match="bytes; at most"):
        read_submission(path, "id", IDS, SCORE)
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize(
    "content",
    [
        b"," * 1_000_000 + b"\n",
        b"id,y" + b",c" * 500_000,
        b"x" * 1_000_000,
        b'"' + b"x" * 1_000_000,
        b"\n" * 1_000_000,
        b"id,y\n" + b"a,1\n" * 250_000,
        b"id,y\na," + b"9" * 900_000 + b"\nb,1\nc,1\n",
        b"id,y\n" + b"a" * 900_000 + b",1\n",
    ],
    ids=["columns", "names", "one word", "open quote", "blank lines", "rows", "long number", "long id"],
)
def test_a_hostile_shape_is_refused_in_little_memory(tmp_path: Path, content: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InvalidSubmission) as caught:
        read(tmp_path, content)
    assert len(str(caught.value)) < 400
    # ru_maxrss is in KiB; a million short strings would take less.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000


cells = st.one_of(
    st.text(max_size=6),
    st.floats().map(str),
    st.integers(-5, 5).map(str),
    st.sampled_from(["a", "b", "c", "id", "y", "", '"', "\n", "1e400", "-0", "1,2", "\x00", "ſ", "١"]),
)
tables = st.lists(st.lists(cells, max_size=4), max_size=6)


@given(tables, st.sampled_from([SCORE, PROBABILITY, COUNT, LABEL, NAME, CLASSES]), st.booleans())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_table(tmp_path: Path, table: list[list[str]], columns: tuple[Column, ...], headed: bool) -> None:
    rows = [",".join(row) for row in table]
    head = ["id," + ",".join(column.name for column in columns)] if headed else []
    _never_crashes(tmp_path, "\n".join(head + rows).encode("utf-8", "surrogatepass"), columns)


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    _never_crashes(tmp_path, data, SCORE)
    _never_crashes(tmp_path, b"id,y\na,1\nb,2\nc," + data, SCORE)


def _never_crashes(tmp_path: Path, data: bytes, columns: tuple[Column, ...]) -> None:
    try:
        found = read(tmp_path, data, columns)
    except InvalidSubmission as error:
        message = str(error)
    else:
        message = ""
    assert message.isascii()
    assert "\n" not in message
    if message:
        return
    assert len(found) == 3
    assert np.isfinite(found).all()
    if columns[0].prediction in (Prediction.PROBABILITY, Prediction.CLASS_PROBABILITIES):
        assert ((found >= 0) & (found <= 1)).all()
    if columns[0].labels:
        assert set(found.tolist()) <= set(range(len(columns[0].labels)))


numbers = st.lists(st.floats(-1e100, 1e100), min_size=3, max_size=3)


@given(numbers, st.permutations(IDS))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_numbers_come_back_exactly_in_any_order(tmp_path: Path, values: list[float], order: list[str]) -> None:
    by_id = dict(zip(IDS, values, strict=True))
    text = "id,y\n" + "".join(f"{key},{by_id[key]!r}\n" for key in order)
    assert read(tmp_path, text).tolist() == values
