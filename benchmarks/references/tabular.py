"""References for tables: numbers and categories, missing values, every kind of target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize, nnls  # type: ignore[import-untyped]
from scipy.special import softmax  # type: ignore[import-untyped]
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Ridge, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, QuantileTransformer, StandardScaler

from benchmarks.references.folder import Array, Folder, Reference

__all__ = ["NEARLY_LINEAR", "TABULAR"]

_LABELS = ("accuracy", "qwk")
_PROBABILITIES = ("roc_auc", "average_precision", "log_loss", "log_loss_multiclass")


def _regression(folder: Folder) -> bool:
    # A weighted kappa rewards being near, as a regression does.
    return folder.metric not in (*_PROBABILITIES, "accuracy")


def _target(folder: Folder) -> Array:
    y = folder.labels.to_numpy()
    return np.log1p(y) if folder.metric == "rmsle" else y


def _dense(numbers: Any) -> Any:
    """One-hot categories and scaled numbers, missing ones filled and marked."""
    text = make_column_selector(dtype_exclude="number")
    rare = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5, sparse_output=False)
    number = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), numbers)
    return make_column_transformer(
        (rare, text), (number, make_column_selector(dtype_include="number")), verbose_feature_names_out=False
    )


def _codes() -> Any:
    """Categories as integers, numbers as they are."""
    text = make_column_selector(dtype_exclude="number")
    coder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1)
    return make_column_transformer((coder, text), remainder=SimpleImputer(strategy="median"))


def _out_of(model: BaseEstimator, folder: Folder, rows: pd.DataFrame) -> Array:
    """Predictions in the shape that is averaged: class probabilities or numbers."""
    return np.asarray(model.predict(rows) if _regression(folder) else model.predict_proba(rows))


def _final(folder: Folder, out: Array, fitted: Array, classes: Array) -> Array:
    """From averaged predictions to what the metric wants. ``fitted`` are out-of-fold predictions on train."""
    if folder.metric == "rmsle":
        return np.expm1(out)
    if folder.metric == "qwk":
        return _cut_points(out, fitted, folder.labels.to_numpy())
    if folder.metric == "accuracy":
        return np.asarray(classes[out.argmax(axis=1)])
    if folder.metric == "log_loss_multiclass":
        order = {name: i for i, name in enumerate(classes)}
        return out[:, [order[name] for name in folder.targets]]
    return out if _regression(folder) else out[:, 1]


def _cut_points(out: Array, fitted: Array, y: Array) -> Array:
    """Cut numbers into ordered labels so that every label is as frequent as in train."""
    bounds = np.quantile(fitted, np.cumsum(np.bincount(y))[:-1] / len(y))
    return np.searchsorted(bounds, out)


def _models(folder: Folder, seed: int) -> dict[str, Callable[[], Any]]:
    if _regression(folder):
        loss = "absolute_error" if folder.metric == "mae" else "squared_error"
        return {
            "linear": lambda: make_pipeline(_dense(StandardScaler()), RidgeCV(np.logspace(-2, 4, 25))),
            "forest": lambda: make_pipeline(
                _codes(), ExtraTreesRegressor(300, min_samples_leaf=2, max_features=0.5, random_state=seed)
            ),
            "boosting": lambda: make_pipeline(
                _codes(),
                HistGradientBoostingRegressor(
                    loss=loss, learning_rate=0.05, max_iter=300, max_leaf_nodes=15, random_state=seed
                ),
            ),
        }
    many = folder.labels.nunique() > 10
    return {
        "linear": lambda: make_pipeline(
            _dense(QuantileTransformer(n_quantiles=100, output_distribution="normal") if many else StandardScaler()),
            LogisticRegression(C=3.0, max_iter=2000)
            if many
            else LogisticRegressionCV(
                Cs=np.logspace(-3, 1, 9),
                scoring="neg_log_loss",
                max_iter=2000,
                l1_ratios=(0,),
                use_legacy_attributes=False,
            ),
        ),
        "forest": lambda: make_pipeline(
            _codes(), ExtraTreesClassifier(500, min_samples_leaf=1 if many else 3, random_state=seed)
        ),
        "boosting": lambda: make_pipeline(
            _codes(),
            HistGradientBoostingClassifier(
                learning_rate=0.1 if many else 0.03,
                max_iter=60 if many else 200,
                max_leaf_nodes=8,
                min_samples_leaf=10,
                random_state=seed,
            ),
        ),
    }


def _folds(folder: Folder, seed: int) -> Any:
    return (KFold if _regression(folder) else StratifiedKFold)(5, shuffle=True, random_state=seed)


def _fit(folder: Folder, seed: int, names: tuple[str, ...]) -> Array:
    """Fit the named models; several are blended with weights that fit out-of-fold predictions best."""
    x, y, test = folder.train[folder.features], _target(folder), folder.test[folder.features]
    method = "predict" if _regression(folder) else "predict_proba"
    models = _models(folder, seed)
    out = np.stack([_out_of(models[name]().fit(x, y), folder, test) for name in names], axis=-1)
    if len(names) == 1 and folder.metric != "qwk":
        return _final(folder, out[..., 0], out, np.unique(y))
    folds = _folds(folder, seed)
    fitted = np.stack([cross_val_predict(models[n](), x, y, cv=folds, method=method) for n in names], axis=-1)
    weights = _weights(fitted, y, _regression(folder))
    return _final(folder, out @ weights, fitted @ weights, np.unique(y))


def _weights(fitted: Array, y: Array, regression: bool) -> Array:
    """Weights of a blend, summing to 1: least squares for numbers, log loss for probabilities.

    ``fitted`` are out-of-fold predictions, shape ``(rows, models)`` or ``(rows, classes, models)``.
    """
    if regression:
        weights, _ = nnls(fitted, y)
        return np.asarray(weights / weights.sum())
    right = fitted[np.arange(len(y)), np.unique(y, return_inverse=True)[1]]

    def loss(z: Array) -> float:
        return float(-np.mean(np.log(np.clip(right @ softmax(z), 1e-15, None))))

    return np.asarray(softmax(minimize(loss, np.zeros(fitted.shape[-1]), method="Nelder-Mead").x))


def _numeric(folder: Folder) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Numeric columns of train and test, zeros for missing values."""
    names = folder.test[folder.features].select_dtypes("number").columns
    return folder.train[names].fillna(0), folder.test[names].fillna(0)


def _plain(folder: Folder, seed: int) -> Array:
    """A linear model on the numeric columns, nothing tuned."""
    (x, test), y = _numeric(folder), folder.labels.to_numpy()
    if folder.metric == "qwk" or not _regression(folder):
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(x, y)
        if folder.metric in _LABELS:
            return np.asarray(model.predict(test))
        return _final(folder, model.predict_proba(test), y, np.unique(y))
    predictions = make_pipeline(StandardScaler(), Ridge()).fit(x, y).predict(test)
    return np.asarray(np.clip(predictions, y.min(), y.max()))


def _neighbours(folder: Folder, seed: int) -> Array:
    """Shares among the 30 nearest rows."""
    x, test = _numeric(folder)
    model = make_pipeline(StandardScaler(), KNeighborsClassifier(30)).fit(x, folder.labels)
    return np.asarray(model.predict_proba(test)[:, 1])


def _one(name: str) -> Reference:
    return Reference(name, lambda folder, seed: _fit(folder, seed, (name,)))


_RISING = (
    _one("linear"),
    _one("forest"),
    _one("boosting"),
    Reference("blend", lambda folder, seed: _fit(folder, seed, ("linear", "forest", "boosting"))),
)

TABULAR: tuple[Reference, ...] = (Reference("plain linear", _plain, baseline=True), *_RISING)
"""For a table of any kind."""

NEARLY_LINEAR: tuple[Reference, ...] = (
    Reference("neighbours", _neighbours, baseline=True),
    Reference("plain linear", _plain),
    *_RISING,
)
"""For a binary table where a plain linear model is among the best."""
