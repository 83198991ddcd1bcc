"""Run lengths against masks that are decoded pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.rle import dice, encode_runs, parse_runs, read_runs

masks = st.lists(st.booleans(), min_size=1, max_size=40).map(lambda bits: np.array(bits, dtype=np.bool_))


@given(masks)
def test_text_and_back(mask: np.ndarray) -> None:
    runs = parse_runs(encode_runs(mask), len(mask))
    assert (runs.mask(len(mask)) == mask).all()
    assert runs.area == mask.sum()


@given(st.data())
def test_overlap_and_dice(data: st.DataObject) -> None:
    first = data.draw(masks)
    second = np.resize(data.draw(masks), len(first))
    one, other = (parse_runs(encode_runs(mask), len(first)) for mask in (first, second))
    both, total = int((first & second).sum()), int(first.sum() + second.sum())
    assert one.overlap(other) == other.overlap(one) == both
    assert dice(one, other, -1.0) == (2 * both / total if total else -1.0)


def test_leniency() -> None:
    assert parse_runs("9 5 20 2", 10).mask(10).nonzero()[0].tolist() == [8, 9]
    assert parse_runs(f"1 {10**30}", 10).area == 10
    assert parse_runs("1 3 9", 20).mask(20).nonzero()[0].tolist() == [0, 1, 2, 8, 9, 10]
    assert parse_runs("4", 10).area == 0
    assert parse_runs(" 1  2 3 1 ", 10).mask(10).nonzero()[0].tolist() == [0, 1, 2]
    assert parse_runs("30 5 30 5", 10).area == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 x", "'x' is no whole number"),
        ("1 2.0", "'2.0' is no whole number"),
        ("5 2 1 2", "descending"),
        ("0 2", "the start 0"),
        ("3 0", "the length 0"),
        ("1 5 3 1", "overlaps"),
        ("1 2 5 2 9", "5 numbers, an odd count"),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    with pytest.raises(InvalidSubmission, match=reason) as caught:
        read_runs(["", text], "mask", [10, 10])
    assert str(caught.value).startswith("Column 'mask', row 2: ")


def test_empty_cells() -> None:
    assert read_runs([float("nan"), "-"], "mask", [4, 4], allow_empty=True, none="-")[1].area == 0
    with pytest.raises(InvalidSubmission, match="row 1: an empty cell"):
        read_runs([float("nan")], "mask", [4])
    with pytest.raises(InvalidSubmission, match="row 1: '3'"):
        read_runs([3], "mask", [4], allow_empty=True)
