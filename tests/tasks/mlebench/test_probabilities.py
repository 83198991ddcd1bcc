"""Class probabilities: log losses against scikit-learn's, rules for sums, what is refused."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.competition import competition_module
from mle_gym.tasks.mlebench.files import split_rows
from mle_gym.tasks.mlebench.imitate import ellipse, split_labels
from mle_gym.tasks.mlebench.probabilities import (
    binary_log_loss,
    class_log_loss,
    columns_auc,
    one_hot,
    require_only,
    rounds_to_one,
    sum_is_close,
)

CLASSES = ["a", "b", "c"]


def _tables(rows: int = 40) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, rows)
    answers = pd.DataFrame(np.eye(3, dtype=int)[labels], columns=CLASSES)
    answers.insert(0, "id", [f"x{number}" for number in range(rows)])
    guess = pd.DataFrame(rng.dirichlet([1, 1, 1], rows), columns=CLASSES)
    guess.insert(0, "id", answers["id"])
    return guess, answers, labels


def test_class_log_loss_is_that_of_scikit_learn_in_any_order() -> None:
    guess, answers, labels = _tables()
    expected = log_loss(labels, guess[CLASSES].to_numpy())
    mixed = guess.sample(frac=1.0, random_state=0)[["c", "id", "a", "b"]]
    assert class_log_loss(guess, answers, "id", CLASSES) == pytest.approx(expected, abs=1e-12)
    assert class_log_loss(mixed, answers, "id", CLASSES, digits=6) == pytest.approx(expected, abs=1e-12)


def test_certainty_costs_at_most_36() -> None:
    guess, answers, _ = _tables()
    wrong = guess.copy()
    wrong[CLASSES] = answers[["b", "c", "a"]].to_numpy()
    assert class_log_loss(wrong, answers, "id", CLASSES) == pytest.approx(-math.log(2**-52), abs=1e-9)
    assert class_log_loss(answers, answers, "id", CLASSES) == pytest.approx(2**-52, rel=1e-3)


@pytest.mark.parametrize(("surplus", "close", "six"), [(3e-7, True, True), (7e-7, True, False), (2e-5, False, False)])
def test_sums(surplus: float, close: bool, six: bool) -> None:
    values = np.array([[0.25, 0.25, 0.5 + surplus]])
    assert sum_is_close(values).tolist() == [close]
    assert rounds_to_one(values, 6).tolist() == [six]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t: t.assign(a=t["a"].where(t.index != 4)), "Column 'a', row 5: an empty cell; expected a number in"),
        (lambda t: t.assign(b=2 * t["b"].clip(upper=0.3) + 0.1), "Row 1: the probabilities of a row sum to"),
        (lambda t: t.assign(id=t["id"].replace("x7", "x6")), "1 of 40 ids are missing, the first is 'x7'."),
        (lambda t: t.drop(columns="c"), "The submission has no column 'c'; it has id, a, b."),
        (lambda t: t[:-1], "The submission has 39 rows; expected 40"),
    ],
)
def test_refused(change, sentence: str) -> None:  # type: ignore[no-untyped-def]
    guess, answers, _ = _tables()
    with pytest.raises(InvalidSubmission) as caught:
        class_log_loss(change(guess), answers, "id", CLASSES)
    assert sentence in str(caught.value)


def test_binary_log_loss() -> None:
    rng = np.random.default_rng(5)
    answers = pd.DataFrame({"id": range(50), "label": rng.integers(0, 2, 50)})
    guess = pd.DataFrame({"id": range(50), "label": rng.random(50)}).sample(frac=1.0, random_state=1)
    expected = log_loss(answers["label"], guess.sort_values("id")["label"])
    assert binary_log_loss(guess, answers, "id", "label") == pytest.approx(expected, abs=1e-12)
    with pytest.raises(InvalidSubmission, match="hold one value of 'label' only"):
        binary_log_loss(guess, answers.assign(label=1), "id", "label")


def test_columns_auc() -> None:
    rng = np.random.default_rng(6)
    truth, values = rng.integers(0, 2, (60, 2)), rng.random((60, 2))
    assert columns_auc(truth, values, ["p", "q"]) == pytest.approx(roc_auc_score(truth, values), abs=1e-12)
    truth[:, 1] = 0
    with pytest.raises(InvalidSubmission, match="one class of 'q' only"):
        columns_auc(truth, values, ["p", "q"])


def test_require_only_names_the_column_that_is_too_many() -> None:
    with pytest.raises(InvalidSubmission, match=r"Column 'a\.1' is one too many; expected only id, a\."):
        require_only(pd.DataFrame(columns=["id", "a", "a.1"]), ["id", "a"])


def test_one_hot() -> None:
    table = one_hot(pd.DataFrame({"id": [7, 8], "kind": ["b", "a"]}, index=[5, 2]), "id", "kind", CLASSES)
    assert table.to_csv(index=False) == "id,a,b,c\n7,0,1,0\n8,1,0,0\n"
    with pytest.raises(ValueError, match="holds 'z', which is none of the known classes"):
        one_hot(pd.DataFrame({"id": [7], "kind": ["z"]}), "id", "kind", CLASSES)


def test_columns_of_toxic_comments_go_by_position() -> None:
    module = competition_module("jigsaw_toxic_comment_classification_challenge")
    rng = np.random.default_rng(8)
    kinds = ["toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate"]
    answers = pd.DataFrame(rng.integers(0, 2, (50, 6)), columns=kinds)
    answers.loc[:9] = -1
    answers.insert(0, "id", [f"{number:03d}" for number in range(50)])
    guess = answers.copy()
    guess[kinds] = rng.random((50, 6))
    values, truth = guess[kinds].to_numpy()[10:], answers[kinds].to_numpy()[10:]
    assert module.grade(guess, answers) == pytest.approx(roc_auc_score(truth, values), abs=1e-12)
    backwards = guess[["id", *kinds[::-1]]]
    assert module.grade(backwards, answers) == pytest.approx(roc_auc_score(truth, values[:, ::-1]), abs=1e-12)


def test_repeated_eeg_ids_are_matched_in_their_order() -> None:
    module = competition_module("hms_harmful_brain_activity_classification")
    votes = [f"{kind}_vote" for kind in ("seizure", "lpd", "gpd", "lrda", "grda", "other")]
    answers = pd.DataFrame(np.eye(6, dtype=int)[[0, 1, 2]] * 4, columns=votes).assign(eeg_id=[9, 3, 9])
    guess = answers.copy()
    guess[votes] /= 4
    assert module.grade(guess.iloc[[1, 0, 2]], answers) == pytest.approx(0.0, abs=1e-12)
    # Two rows of the same id changed places: both are as wrong as 1e-15 allows.
    assert module.grade(guess.iloc[[2, 1, 0]], answers) == pytest.approx(2 * math.log(1e15) / 3, rel=1e-9)


def test_order_of_the_file_decides_which_bases_are_scored() -> None:
    module = competition_module("stanford_covid_vaccine")
    targets = ["reactivity", "deg_Mg_pH10", "deg_pH10", "deg_Mg_50C", "deg_50C"]
    answers = pd.DataFrame({"id_seqpos": ["m_0", "m_1", "m_2"], **{key: [1.0, 3.0, 0.0] for key in targets}})
    answers["keep"] = [True, True, False]
    assert module.grade(answers, answers) == 0.0
    # m_2 stands first and is scored for it; by id, m_1 and m_2 meet m_0 and m_1.
    moved = answers.iloc[[2, 1, 0]].reset_index(drop=True)
    assert module.grade(moved, answers) == pytest.approx(math.sqrt(((3 - 1) ** 2 + (0 - 3) ** 2) / 2), abs=1e-12)


def test_split_labels_has_every_class_on_both_sides() -> None:
    labels = split_labels(np.random.default_rng(0), 200, (0.6, 0.3, 0.1))
    train, test = split_rows(np.arange(200), test_size=0.1)
    assert np.bincount(labels[test]).tolist() == [12, 6, 2]
    assert np.bincount(labels[train]).tolist() == [108, 54, 18]


def test_ellipse() -> None:
    inside = ellipse((21, 31), (10, 15), (5, 10))
    assert inside[10, 15] == 1.0
    assert inside[10, 25] == pytest.approx(0.0)
    assert inside[15, 15] == pytest.approx(0.0)
    assert (inside > 0).sum() == pytest.approx(math.pi * 50, rel=0.1)
    assert ellipse((21, 31), (10, 15), (5, 10), math.pi / 2)[20, 15] == pytest.approx(0.0)
