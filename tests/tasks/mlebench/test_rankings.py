"""Metrics on ranked lists, sets of labels and ranked labels, against scikit-learn and values known by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score, label_ranking_average_precision_score
from sklearn.preprocessing import MultiLabelBinarizer

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.competitions import alaska2_image_steganalysis as alaska
from mle_gym.tasks.mlebench.competitions import freesound_audio_tagging_2019 as freesound
from mle_gym.tasks.mlebench.competitions import h_and_m_personalized_fashion_recommendations as h_and_m
from mle_gym.tasks.mlebench.competitions import rsna_breast_cancer_detection as mammograms
from mle_gym.tasks.mlebench.multilabel import micro_f1
from mle_gym.tasks.mlebench.rankings import guesses, map_one_truth, mean_average_precision
from mle_gym.tasks.task import TaskUnavailable


def test_one_true_item_counts_by_its_rank() -> None:
    rows = 700
    answers = pd.DataFrame({"image": [f"{row}.jpg" for row in range(rows)], "hotel_id": range(rows)})
    cells = [" ".join(["x"] * (row % 7) + [str(row)]) for row in range(rows)]
    found = map_one_truth(answers[["image"]].assign(hotel_id=cells), answers, "image", "hotel_id", 5)
    assert found == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 7, rel=1e-12)


def test_several_true_items_by_hand() -> None:
    # Hits at ranks 1 and 3 of three true items; a repeated hit is none; an empty row counts 0.
    ranked = guesses(["a x b", "a a b", float("nan"), 7])
    truths = [{"a", "b", "c"}, {"a", "b"}, {"a"}, {"7"}]
    expected = ((1 + 2 / 3) / 3 + (1 + 2 / 3) / 2 + 0 + 1) / 4
    assert mean_average_precision(truths, ranked, 12) == pytest.approx(expected, rel=1e-12)
    assert mean_average_precision(truths, ranked, 1) == pytest.approx((1 + 1 + 0 + 1) / 4, rel=1e-12)
    assert guesses(["a  b"]) == [["a", "", "b"]]


def test_micro_f1_as_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    sets = [[set(rng.choice(list("abcdef"), rng.integers(1, 5)).tolist()) for _ in range(200)] for _ in range(2)]
    binarizer = MultiLabelBinarizer().fit(sets[0])
    expected = f1_score(*map(binarizer.transform, sets), average="micro")
    truth, found = (
        pd.DataFrame({"id": range(200), "labels": [" ".join(sorted(cell)) for cell in cells]}) for cells in sets
    )
    assert micro_f1(found.iloc[::-1], truth, "id", "labels") == pytest.approx(expected, rel=1e-12)
    assert micro_f1(found.assign(labels=found["labels"] + " unheard"), truth, "id", "labels") == pytest.approx(expected)
    with pytest.raises(InvalidSubmission, match=r"Column 'labels', row 1: '5'; expected text"):
        micro_f1(found.assign(labels=5), truth, "id", "labels")


def test_ranked_labels_as_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    truth, scores = rng.random((300, 6)) < 0.3, rng.random((300, 6)).round(1)
    some = truth.sum(axis=1) > 0
    expected = label_ranking_average_precision_score(truth[some], scores[some], sample_weight=truth[some].sum(axis=1))
    names = [f"{row}.wav" for row in range(300)]
    answers = pd.DataFrame(truth.astype(int), columns=list("abcdef"))
    submission = pd.DataFrame(scores, columns=list("abcdef"))
    for frame in (answers, submission):
        frame.insert(0, "fname", names)
    assert freesound.grade(submission, answers) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(InvalidSubmission, match=r"Column 2 of the submission is 'b'; expected 'a'"):
        freesound.grade(submission[["fname", *"bacdef"]], answers)


def test_area_below_the_bound_counts_double() -> None:
    answers = pd.DataFrame({"Id": [f"{row:04d}.jpg" for row in range(10)], "Label": [0, 1] * 5})
    assert alaska.grade(answers.assign(Label=0), answers) == pytest.approx((0.4 * 0.8 * 2 + 0.6 * 0.3) / 1.4)
    assert alaska.grade(answers, answers) == pytest.approx(1.0)
    # Four of ten positives above all negatives, six below all of them: only the lower band is full.
    labels = np.repeat([1, 0, 1], (4, 10, 6))
    answers = pd.DataFrame({"Id": [f"{row:04d}.jpg" for row in range(20)], "Label": labels})
    found = alaska.grade(answers.assign(Label=-np.arange(20.0)), answers)
    assert found == pytest.approx(0.4 * 2 / 1.4)


def test_probabilities_count_as_shares() -> None:
    answers = pd.DataFrame({"prediction_id": list("abcd"), "cancer": [1, 1, 0, 0]})
    # Hits 0.5 + 1 of 2; predicted 0.5 + 1 + 0.5 + 0 = 2.
    found = mammograms.grade(answers.assign(cancer=[0.5, 7.0, 0.5, -1.0]), answers)
    assert found == pytest.approx(2 * 0.75 * 0.75 / 1.5)
    assert mammograms.grade(answers.assign(cancer=[1.0, 1.0, 0.0, np.nan]), answers) == 0.0
    with pytest.raises(InvalidSubmission, match="every cell is negative"):
        mammograms.grade(answers.assign(cancer=-0.5), answers)


def test_purchases_are_split_alike_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    h_and_m.stand_in(raw, np.random.default_rng(0), "tiny")
    made = []
    for piece in (h_and_m._PIECE, 97):
        monkeypatch.setattr(h_and_m, "_PIECE", piece)
        folder = tmp_path / str(piece)
        for part in ("public", "private"):
            (folder / part).mkdir(parents=True)
        h_and_m.prepare(raw, folder / "public", folder / "private")
        made.append([(folder / file).read_bytes() for file in ("public/transactions_train.csv", "private/answers.csv")])
    assert made[0] == made[1]
    dates = pd.read_csv(tmp_path / "97" / "public" / "transactions_train.csv")["t_dat"]
    assert dates.max() == "2020-09-14"  # eight days before the day after the last


def test_labels_that_are_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freesound, "_ZENODO", "http://127.0.0.1:9/none.zip")
    with pytest.raises(TaskUnavailable, match=r"cannot be fetched .* put it at"):
        freesound.prepare(tmp_path, tmp_path, tmp_path)
