"""Shared metrics on small tables worked out by hand."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.metrics import accuracy, binary_auc, mean_column_auc, same_order

ANSWERS = pd.DataFrame({"id": ["a", "b", "c", "d"], "y": [0, 1, 0, 1], "z": [1, 1, 0, 0]})


def _submission(**columns: list[object]) -> pd.DataFrame:
    return pd.DataFrame({"id": ["d", "c", "b", "a"], **columns})


def test_auc_counts_pairs() -> None:
    # Pairs (no, yes): a-b 0.1 < 0.4, a-d 0.1 < 0.4, c-b 0.4 = 0.4 counts half, c-d the same: 3 of 4.
    assert binary_auc(_submission(y=[0.4, 0.4, 0.4, 0.1]), ANSWERS, "id", "y") == 0.75


def test_mean_auc_takes_each_column_alone() -> None:
    both = _submission(y=[0.4, 0.4, 0.4, 0.1], z=[0.0, 0.0, 1.0, 1.0])
    assert mean_column_auc(both, ANSWERS, "id", "y", "z") == (0.75 + 1.0) / 2


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=2, max_size=20))
def test_auc_is_the_share_of_ordered_pairs(rows: list[tuple[bool, int]]) -> None:
    truth = [int(yes) for yes, _ in rows]
    if len(set(truth)) < 2:
        return
    scores = [score / 4 for _, score in rows]
    answers = pd.DataFrame({"id": range(len(rows)), "y": truth})
    no, yes = ([score for score, label in zip(scores, truth, strict=True) if label == k] for k in (0, 1))
    pairs = [(a, b) for a in no for b in yes]
    expected = sum((a < b) + 0.5 * (a == b) for a, b in pairs) / len(pairs)
    found = binary_auc(pd.DataFrame({"id": range(len(rows)), "y": scores}), answers, "id", "y")
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("labels", "score"),
    [([1, 0, 1, 0], 1.0), ([1.0, 0.0, 0.0, 0.0], 0.75), ([7, 0, 1, 0], 0.75), ([True, False, True, False], 1.0)],
)
def test_accuracy(labels: list[object], score: float) -> None:
    assert accuracy(_submission(y=labels), ANSWERS, "id", "y") == score


def test_text_equals_no_number() -> None:
    answers = ANSWERS.assign(y=[0, 1, 2, 3])
    assert accuracy(_submission(y=["3", "2", "1", "x"]), answers, "id", "y") == 0.0


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1.0, 0.5, 1.0, 0.0], r"Column 'y', row 2: '0.5'; expected a label, like '0'\."),
        ([1.0, 0.0, np.inf, 0.0], "row 3: 'inf'"),
        ([np.nan, 0.0, 1.0, 0.0], "row 1: an empty cell"),
        ([1, "x", 1, 0], "row 2: 'x'"),
        ([None, "x", "1", "0"], "row 1: an empty cell"),
        (["0", "1", "1", "0"], "row 1: '0'; expected a number, like '0', and the test set has no third label"),
    ],
)
def test_what_is_no_label(labels: list[object], message: str) -> None:
    with pytest.raises(InvalidSubmission, match=message):
        accuracy(_submission(y=labels), ANSWERS, "id", "y")


def test_ids_that_stand_twice() -> None:
    answers = pd.DataFrame({"id": ["a", "b", "b", "c"], "y": [0, 1, 1, 0]})
    assert binary_auc(answers.iloc[::-1], answers, "id", "y") == 1.0
    first, second = same_order(answers.iloc[::-1], answers, "id")
    assert answers.iloc[::-1]["id"].iloc[first].tolist() == answers["id"].iloc[second].tolist()
    with pytest.raises(InvalidSubmission, match=r"Column 'id', row 4: 'b' stood there before; expected it 2 times\."):
        binary_auc(answers.assign(id=["a", "b", "b", "b"]), answers, "id", "y")
    with pytest.raises(InvalidSubmission, match=r"Column 'id', row 3: 'a' stood there before; expected it once\."):
        binary_auc(ANSWERS.assign(id=["a", "b", "a", "c"]), ANSWERS, "id", "y")


def test_one_class_has_no_curve() -> None:
    with pytest.raises(InvalidSubmission, match="one class only"):
        binary_auc(_submission(y=[0, 0, 0, 1]), ANSWERS.assign(y=1), "id", "y")


def test_large_files_take_seconds() -> None:
    rows = 200_000
    rng = np.random.default_rng(0)
    answers = pd.DataFrame({"id": rng.permutation(rows), "y": rng.integers(0, 2, rows)})
    begin = time.perf_counter()
    assert binary_auc(answers.sort_values("id"), answers, "id", "y") == 1.0
    assert time.perf_counter() - begin < 5.0
