"""Metrics against numbers worked out by hand, from their definitions alone."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mle_gym.grading.metrics import METRICS, Prediction, get_metric


def compute(name: str, answers: object, predictions: object) -> float:
    return get_metric(name).compute(np.asarray(answers), np.asarray(predictions))


@pytest.mark.parametrize(
    ("name", "answers", "predictions", "expected"),
    [
        ("accuracy", [0, 1, 2, 2], [0, 1, 1, 2], 3 / 4),
        # recall 1/2, 1, 1/1
        ("balanced_accuracy", [0, 0, 1, 2], [0, 1, 1, 2], (1 / 2 + 1 + 1) / 3),
        # precision 2/3, recall 2/4
        ("f1", [1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 1, 0], 2 * (2 / 3) * (1 / 2) / (2 / 3 + 1 / 2)),
        # F1 of class 0: p 1, r 1/2; of class 1: p 1/2, r 1; of class 2: never predicted
        ("f1_macro", [0, 0, 1, 2], [0, 1, 1, 1], (2 / 3 + 1 / 2 + 0) / 3),
        # tp 2, tn 1, fp 1, fn 2
        ("mcc", [1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 1, 0], (2 * 1 - 1 * 2) / math.sqrt(3 * 4 * 2 * 3)),
        # pairs: of 2 x 2 pairs 3 are in order
        ("roc_auc", [0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], 3 / 4),
        ("roc_auc", [0, 1], [7.0, 7.0], 1 / 2),
        # ranked: 1 (precision 1/1), 0, 1 (precision 2/3)
        ("average_precision", [1, 0, 1], [0.9, 0.8, 0.7], (1 + 2 / 3) / 2),
        ("log_loss", [1, 0], [0.8, 0.4], -(math.log(0.8) + math.log(0.6)) / 2),
        ("log_loss_multiclass", [0, 2], [[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]], -(math.log(0.5) + math.log(0.8)) / 2),
        ("brier", [1, 0], [0.8, 0.4], (0.04 + 0.16) / 2),
        ("rmse", [1.0, 2.0], [2.0, 4.0], math.sqrt(5 / 2)),
        ("rmsle", [0.0, math.e - 1], [math.e - 1, math.e**3 - 1], math.sqrt((1 + 4) / 2)),
        ("mae", [1.0, 2.0, 3.0], [2.0, 2.0, 1.0], 1.0),
        ("median_ae", [1.0, 2.0, 3.0], [2.0, 2.0, 9.0], 1.0),
        # residuals 1, 0, 0 against a spread of 2
        ("r2", [1.0, 2.0, 3.0], [2.0, 2.0, 3.0], 1 - 1 / 2),
        # ranks 1 2 3 and 1 3 2: 1 - 6 * 2 / (3 * 8)
        ("spearman", [10.0, 20.0, 30.0], [1.0, 300.0, 2.0], 0.5),
        ("pearson", [0.0, 1.0, 2.0], [0.0, 2.0, 1.0], 0.5),
    ],
)
def test_by_hand(name: str, answers: list[float], predictions: list[float], expected: float) -> None:
    assert compute(name, answers, predictions) == pytest.approx(expected, abs=1e-12)


def test_kappa_by_its_definition() -> None:
    answers, predictions, k = [0, 1, 2, 3, 3, 0], [0, 2, 2, 3, 1, 1], 4
    observed, expected = 0.0, 0.0
    for i, j in itertools.product(range(k), repeat=2):
        weight = (i - j) ** 2 / (k - 1) ** 2
        observed += weight * sum((a, p) == (i, j) for a, p in zip(answers, predictions, strict=True))
        expected += weight * answers.count(i) * predictions.count(j) / len(answers)
    assert compute("qwk", answers, predictions) == pytest.approx(1 - observed / expected, abs=1e-12)


def test_kappa_keeps_the_distance_of_labels_that_do_not_occur() -> None:
    # Labels 0 and 3 only: with indices of labels present, as some graders do, this would be the kappa of 0 and 1.
    answers, predictions = [0, 0, 3, 3], [0, 1, 3, 3]
    assert compute("qwk", answers, predictions) == pytest.approx(
        1 - 1 / (4 * (0.5 * (0.25 * 1 + 0.5 * 9) + 0.5 * (0.25 * 9 + 0.25 * 4))), abs=1e-12
    )


@pytest.mark.parametrize("name", ["pearson", "spearman"])
@pytest.mark.parametrize("constant", [0.0, 1e-30, -7.25, 1e100])
def test_a_constant_has_no_correlation(name: str, constant: float) -> None:
    assert compute(name, [1.0, 2.0, 4.0], [constant] * 3) == 0.0


@given(st.lists(st.floats(-1e100, 1e100), min_size=2, max_size=12))
@settings(max_examples=100, deadline=None)
def test_every_regression_metric_is_finite_on_what_validation_lets_through(predictions: list[float]) -> None:
    answers = np.linspace(0.0, 5.0, len(predictions))
    for metric in METRICS.values():
        if metric.prediction in (Prediction.NUMBER, Prediction.NON_NEGATIVE):
            values = np.abs(predictions) if metric.prediction is Prediction.NON_NEGATIVE else np.asarray(predictions)
            assert math.isfinite(metric.compute(answers, values)), metric.name


def _perfect(metric_name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answers, the best predictions and worse ones."""
    prediction = get_metric(metric_name).prediction
    if prediction is Prediction.CLASS_PROBABILITIES:
        return np.array([0, 1, 2]), np.eye(3), np.full((3, 3), 1 / 3)
    if prediction in (Prediction.NUMBER, Prediction.NON_NEGATIVE) or metric_name == "spearman":
        return np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 4.0]), np.array([2.0, 1.0, 5.0])
    if prediction is Prediction.LABEL:
        return np.array([0, 1, 1, 0]), np.array([0, 1, 1, 0]), np.array([1, 1, 1, 0])
    return np.array([0.0, 1.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0, 0.0]), np.array([0.5, 0.4, 0.9, 0.1])


@pytest.mark.parametrize("name", sorted(METRICS))
def test_the_answers_reach_the_best_value_and_nothing_else_does(name: str) -> None:
    metric = METRICS[name]
    answers, best, worse = _perfect(name)
    assert metric.compute(answers, best) == pytest.approx(metric.best, abs=1e-12)
    sign = 1 if metric.higher_is_better else -1
    assert sign * metric.compute(answers, worse) < sign * metric.best


def test_unknown_metric_suggests_a_near_one() -> None:
    with pytest.raises(KeyError, match="did you mean roc_auc"):
        get_metric("rocauc")
