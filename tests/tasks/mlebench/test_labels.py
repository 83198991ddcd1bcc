"""Labels as scikit-learn takes them, and metrics of one label per row."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, f1_score

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.labels import (
    accuracy,
    first_token_label,
    id_pairs,
    integer_label,
    labels,
    macro_f1,
    parsed_labels,
    quadratic_kappa,
    same_share,
    whole_numbers,
)

ROWS = st.lists(st.tuples(st.integers(-3, 9), st.integers(-3, 9)), min_size=2, max_size=40)


@given(ROWS.filter(lambda rows: len({label for row in rows for label in row}) > 1))
def test_kappa_is_that_of_scikit_learn(rows: list[tuple[int, int]]) -> None:
    truth, predicted = np.array(rows).T
    expected = cohen_kappa_score(truth, predicted, weights="quadratic")
    assert quadratic_kappa(truth, predicted) == pytest.approx(expected, abs=1e-12)


@given(ROWS)
def test_macro_f1_is_that_of_scikit_learn(rows: list[tuple[int, int]]) -> None:
    truth, predicted = np.array(rows).T
    assert macro_f1(truth, predicted) == pytest.approx(f1_score(truth, predicted, average="macro"), abs=1e-12)


def test_kappa_of_a_constant_is_zero_and_of_one_class_is_nan() -> None:
    assert quadratic_kappa(np.array([0, 1, 2, 4]), np.zeros(4, dtype=np.int64)) == 0.0
    assert math.isnan(quadratic_kappa(np.array([2, 2]), np.array([2, 2])))


def test_kappa_goes_by_rank() -> None:
    near, far = np.array([0, 1, 4]), np.array([0, 4, 1])
    assert quadratic_kappa(near, far) == quadratic_kappa(np.array([0, 1, 2]), np.array([0, 2, 1])) == 0.5


@pytest.mark.parametrize(
    ("cells", "row"),
    [
        (["3", "", "2"], 2),
        (["3", "2.5", "1"], 2),
        (["1", "3", "inf"], 3),
        (["1e300", "3", "4"], 1),
        (["x", "", "y"], 2),
        (["1", "99999999999999999999999", "y"], None),
        (["1", "99999999999999999999999", "3"], 2),
        (["True", "False", ""], 3),
    ],
)
def test_what_is_no_label(cells: list[str], row: int | None, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("label,id\n" + "".join(f"{cell},{n}\n" for n, cell in enumerate(cells)))
    frame = pd.read_csv(path)
    if row is None:
        assert labels(frame, "label").tolist() == cells
        return
    with pytest.raises(InvalidSubmission, match=f"Column 'label', row {row}: .*; expected a whole number"):
        labels(frame, "label")


def test_what_is_a_label() -> None:
    assert labels(pd.DataFrame({"a": [1.0, -2.0]}), "a").tolist() == [1, -2]
    assert labels(pd.DataFrame({"a": [True, False]}), "a").tolist() == [1, 0]
    with pytest.raises(InvalidSubmission, match="row 2: 'x'; expected a whole number"):
        whole_numbers(pd.DataFrame({"a": ["1", "x"]}), "a")


def test_numbers_against_text() -> None:
    three, two, text = np.array([0, 1, 2]), np.array([0, 1, 1]), np.array(["a", "b", "a"], dtype=object)
    assert same_share(three, text, "label") == 0.0
    with pytest.raises(InvalidSubmission, match="row 1: 'a'; expected True or False"):
        same_share(two, text, "label", "True or False")


def test_accuracy_matches_rows_by_id() -> None:
    answers = pd.DataFrame({"id": ["a", "b", "c", "d"], "label": [1, 2, 3, 4]})
    assert accuracy(pd.DataFrame({"label": [4, 3, 2, 9], "id": ["d", "c", "b", "a"]}), answers, "id", "label") == 0.75


def test_cells_are_parsed_one_by_one() -> None:
    frame = pd.DataFrame({"a": [3.9, -1.2]})
    assert parsed_labels(frame, "a", integer_label, "a number").tolist() == [3, -1]
    with pytest.raises(InvalidSubmission, match=r"row 1: '3\.9'; expected a number"):
        parsed_labels(frame, "a", first_token_label, "a number")
    assert parsed_labels(pd.DataFrame({"a": ["7 8 9", "10"]}), "a", first_token_label, "a number").tolist() == [7, 10]
    with pytest.raises(InvalidSubmission, match="row 2: an empty cell; expected a number"):
        parsed_labels(pd.DataFrame({"a": [1.0, math.nan]}), "a", first_token_label, "a number")


def test_repeated_ids_are_paired_in_their_order() -> None:
    answers = pd.DataFrame({"id": ["b", "a", "b"], "label": [1, 2, 3]})
    mine, theirs = id_pairs(pd.DataFrame({"id": ["a", "b", "b"]}), answers, "id")
    assert mine.tolist() == [0, 1, 2]
    assert theirs.tolist() == [1, 0, 2]
    with pytest.raises(InvalidSubmission, match="'b' stands in 1 rows; expected 2"):
        id_pairs(pd.DataFrame({"id": ["a", "b", "a"]}), answers, "id")
