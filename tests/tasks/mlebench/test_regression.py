"""Lining up predictions and answers: by id, by the order of ids, and by ids that may stand twice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned
from mle_gym.tasks.mlebench.regression import matched, merged, rmse, sorted_alike, sorted_part

ANSWERS = pd.DataFrame({"id": [30, 10, 20, 40], "y": [3.0, 1.0, 2.0, 4.0]})


def table(**columns: list[object]) -> pd.DataFrame:
    return pd.DataFrame(columns)


def test_matched_by_id_whatever_the_order() -> None:
    truth, found = matched(table(id=[10, 20, 30, 40], y=[1.5, 2.0, 3.0, 4.0]), ANSWERS, "id", "y")
    assert truth.tolist() == [3.0, 1.0, 2.0, 4.0]
    assert found.tolist() == [3.0, 1.5, 2.0, 4.0]
    assert rmse((truth, found)) == pytest.approx(0.25)  # sqrt(0.5 ** 2 / 4)


def test_bad_cells_are_named_by_the_row_of_the_file() -> None:
    with pytest.raises(InvalidSubmission, match=r"'y', row 2: 'x'"):
        matched(table(id=[10, 20, 30, 40], y=["1", "x", "3", "4"]), ANSWERS, "id", "y")
    with pytest.raises(InvalidSubmission, match=r"'y', row 4: '101'"):
        matched(table(id=[10, 20, 30, 40], y=[1, 2, 3, 101]), ANSWERS, "id", "y", high=100.0)


def test_the_cell_that_made_ids_text_is_named() -> None:
    with pytest.raises(InvalidSubmission, match=r"'id', row 3: 'thirty' is not an id"):
        aligned(table(id=["10", "20", "thirty", "40"], y=[1, 2, 3, 4]), ANSWERS, "id")


@given(st.permutations(range(20)))
def test_aligned_undoes_any_order(order: list[int]) -> None:
    answers = pd.DataFrame({"id": [f"r{n}" for n in range(20)]})
    submission = answers.assign(y=np.arange(20)).iloc[order].reset_index(drop=True)
    assert aligned(submission, answers, "id")["y"].tolist() == list(range(20))


def test_merged_counts_repeated_rows_and_refuses_missing_ones() -> None:
    (truth, found), rows = merged(table(id=[10, 10, 20, 30, 40], y=[1, 2, 2, 3, 4]), ANSWERS, "id", "y")
    assert truth.tolist() == [1.0, 1.0, 2.0, 3.0, 4.0]
    assert found.tolist() == [1.0, 2.0, 2.0, 3.0, 4.0]
    assert rows["id"].tolist() == [10, 10, 20, 30, 40]
    with pytest.raises(InvalidSubmission, match="1 of 4 ids are missing, the first is '30'"):
        merged(table(id=[10, 10, 20, 40], y=[1, 1, 2, 4]), ANSWERS, "id", "y")


def test_sorted_alike_pairs_by_rank_and_never_compares_ids() -> None:
    rows = sorted_alike(table(id=[2, 4, 1, 3], y=[20, 40, 10, 30]), ANSWERS, "id")
    assert rows["y"].tolist() == [30, 10, 20, 40]
    assert rows["id"].tolist() == [30, 10, 20, 40]
    with pytest.raises(InvalidSubmission, match="has 3 rows; expected 4"):
        sorted_alike(table(id=[1, 2, 3], y=[1, 2, 3]), ANSWERS, "id")
    with pytest.raises(InvalidSubmission, match=r"row 3: 'a' cannot be put in one order with '2'"):
        sorted_alike(table(id=[2, 4, "a", 3], y=[1, 2, 3, 4]), ANSWERS, "id")


@given(st.permutations(range(6)), st.lists(st.booleans(), min_size=6, max_size=6))
def test_both_parts_see_the_rows_that_the_whole_sees(order: list[int], public: list[bool]) -> None:
    answers = pd.DataFrame({"id": [5, 3, 1, 0, 4, 2], "y": np.arange(6.0)})
    submission = pd.DataFrame({"id": [f"zz{n}" for n in order], "y": [float(n) for n in order]})
    whole = sorted_alike(submission, answers, "id")["y"].to_numpy()
    for rows in (np.array(public), ~np.array(public)):
        mine, theirs = sorted_part(submission, answers, rows, "id")
        assert mine["y"].tolist() == whole[rows].tolist()
        again = sorted_alike(mine, theirs, "id")["y"].tolist()
        assert again == mine["y"].tolist()
