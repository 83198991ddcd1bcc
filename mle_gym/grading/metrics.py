"""Named metrics: what each computes, which way is better, what predictions it needs.

scikit-learn and scipy define the numbers; they are imported on first use.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["METRICS", "Metric", "Prediction", "get_metric"]

Array = NDArray[Any]


class Prediction(StrEnum):
    """What a submission's prediction columns hold."""

    NUMBER = "number"
    """Any finite number."""
    NON_NEGATIVE = "non-negative number"
    SCORE = "score"
    """Any finite number; only the order of rows matters."""
    PROBABILITY = "probability"
    """A number in [0, 1]."""
    CLASS_PROBABILITIES = "class probabilities"
    """One column for each class, each in [0, 1], rows summing to 1."""
    LABEL = "label"
    """One of the task's labels."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric by name.

    ``compute(answers, predictions) -> float`` takes arrays in the same row order. Labels arrive as their index in
    the task's label list, shape ``(rows,)``; class probabilities as ``(rows, classes)`` against label indices;
    everything else as float64 of shape ``(rows,)``.
    """

    name: str
    title: str
    """As shown to the model."""
    higher_is_better: bool
    best: float
    """The best value there is."""
    prediction: Prediction
    compute: Callable[[Array, Array], float]
    needs_every_class: bool = False
    """Undefined, or another metric, on rows that lack a class: parts are stratified and must hold every class."""


def _accuracy(y: Array, p: Array) -> float:
    return float(np.mean(y == p))


def _balanced_accuracy(y: Array, p: Array) -> float:
    from sklearn.metrics import recall_score

    # Equal to balanced_accuracy_score, without its warning on labels that are predicted but absent.
    return float(recall_score(y, p, labels=np.unique(y), average="macro", zero_division=0))


def _f1(y: Array, p: Array) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(y, p, zero_division=0))


def _f1_macro(y: Array, p: Array) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(y, p, average="macro", zero_division=0))


def _mcc(y: Array, p: Array) -> float:
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(y, p))


def _qwk(y: Array, p: Array) -> float:
    from sklearn.metrics import cohen_kappa_score

    # Labels are indices in the task's order, so the full range keeps the weights right where a label is absent.
    top = int(max(y.max(), p.max()))
    if top == 0:
        return 1.0
    return float(cohen_kappa_score(y, p, weights="quadratic", labels=np.arange(top + 1)))


def _roc_auc(y: Array, p: Array) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y, p))


def _average_precision(y: Array, p: Array) -> float:
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(y, p))


def _log_loss(y: Array, p: Array) -> float:
    from sklearn.metrics import log_loss

    return float(log_loss(y, p, labels=[0, 1]))


def _log_loss_multiclass(y: Array, p: Array) -> float:
    from sklearn.metrics import log_loss

    return float(log_loss(y, p, labels=np.arange(p.shape[1])))


def _brier(y: Array, p: Array) -> float:
    return float(np.mean((y - p) ** 2))


def _rmse(y: Array, p: Array) -> float:
    return float(np.sqrt(np.mean((y - p) ** 2)))


def _rmsle(y: Array, p: Array) -> float:
    return _rmse(np.log1p(y), np.log1p(p))


def _mae(y: Array, p: Array) -> float:
    return float(np.mean(np.abs(y - p)))


def _median_ae(y: Array, p: Array) -> float:
    return float(np.median(np.abs(y - p)))


def _r2(y: Array, p: Array) -> float:
    from sklearn.metrics import r2_score

    return float(r2_score(y, p))


def _pearson(y: Array, p: Array) -> float:
    # A constant has no correlation with anything; 0 says so and keeps a constant sample submission gradable.
    scale = np.abs(p).max()
    p = p / scale if scale > 0 else p
    if np.ptp(p) < 1e-13 or np.ptp(y) == 0:
        return 0.0
    return float(np.corrcoef(y, p)[0, 1])


def _spearman(y: Array, p: Array) -> float:
    from scipy.stats import rankdata  # type: ignore[import-untyped]

    return _pearson(rankdata(y), rankdata(p))


def _table() -> dict[str, Metric]:
    label, score, number = Prediction.LABEL, Prediction.SCORE, Prediction.NUMBER
    rows = (
        Metric("accuracy", "accuracy", True, 1.0, label, _accuracy),
        Metric("balanced_accuracy", "balanced accuracy", True, 1.0, label, _balanced_accuracy, True),
        Metric("f1", "F1 of the positive class", True, 1.0, label, _f1, True),
        Metric("f1_macro", "macro-averaged F1", True, 1.0, label, _f1_macro, True),
        Metric("mcc", "Matthews correlation coefficient", True, 1.0, label, _mcc, True),
        Metric("qwk", "quadratic weighted kappa", True, 1.0, label, _qwk, True),
        Metric("roc_auc", "area under the ROC curve", True, 1.0, score, _roc_auc, True),
        Metric("average_precision", "average precision", True, 1.0, score, _average_precision, True),
        Metric("log_loss", "log loss", False, 0.0, Prediction.PROBABILITY, _log_loss, True),
        Metric(
            "log_loss_multiclass",
            "multi-class log loss",
            False,
            0.0,
            Prediction.CLASS_PROBABILITIES,
            _log_loss_multiclass,
            True,
        ),
        Metric("brier", "Brier score", False, 0.0, Prediction.PROBABILITY, _brier),
        Metric("rmse", "root mean squared error", False, 0.0, number, _rmse),
        Metric("rmsle", "root mean squared logarithmic error", False, 0.0, Prediction.NON_NEGATIVE, _rmsle),
        Metric("mae", "mean absolute error", False, 0.0, number, _mae),
        Metric("median_ae", "median absolute error", False, 0.0, number, _median_ae),
        Metric("r2", "coefficient of determination R2", True, 1.0, number, _r2),
        Metric("pearson", "Pearson correlation", True, 1.0, number, _pearson),
        Metric("spearman", "Spearman rank correlation", True, 1.0, score, _spearman),
    )
    return {metric.name: metric for metric in rows}


METRICS = _table()
"""Name -> :class:`Metric`."""


def get_metric(name: str) -> Metric:
    """Return a metric by name.

    Raises:
        KeyError: No metric has this name; the message suggests near ones.
    """
    try:
        return METRICS[name]
    except KeyError:
        near = difflib.get_close_matches(name, METRICS, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(sorted(METRICS))}."
        raise KeyError(f"There is no metric {name!r}; {hint}") from None
