"""Estimator families that demonstrations draw from, with hyper-parameters from weak to strong."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["FAMILIES", "Estimator", "family_of"]


@dataclass(frozen=True)
class Estimator:
    """A family of scikit-learn estimators."""

    family: str
    """Its name in reports and in plans."""
    module: str
    """Where it is imported from."""
    classifier: str = ""
    """Class name; ``""`` when the family has no classifier."""
    regressor: str = ""
    """Class name; ``""`` when the family has no regressor."""
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Argument -> values as written in code; an argument is given in about two programs of three."""
    classifier_options: Mapping[str, Sequence[str]] | None = None
    """Instead of ``options`` where the classifier takes others."""
    probabilities: bool = True
    """Whether the classifier has ``predict_proba``; else it has ``decision_function``."""
    scaled: bool = False
    """Whether it profits from scaled features."""
    takes_gaps: bool = False
    """Whether it accepts missing values."""
    weight: float = 1.0
    """How often it is drawn, relative to the others."""

    def name(self, *, classify: bool) -> str:
        """Return the class name for the kind of task, ``""`` if there is none."""
        return self.classifier if classify else self.regressor

    def arguments(self, draw: random.Random, *, classify: bool) -> dict[str, str]:
        """Draw hyper-parameters, as written in code."""
        options = self.classifier_options if classify and self.classifier_options is not None else self.options
        return {name: draw.choice(list(values)) for name, values in options.items() if draw.random() < 0.67}


_DEPTHS = ("2", "3", "4", "6", "8", "12")
_TREES = ("10", "20", "30", "50", "100")
_RATES = ("0.01", "0.03", "0.05", "0.1", "0.2", "0.3")
_C = ("0.001", "0.01", "0.1", "1.0", "10.0")

FAMILIES: tuple[Estimator, ...] = (
    Estimator(
        "logistic regression",
        "sklearn.linear_model",
        classifier="LogisticRegression",
        options={"C": _C, "max_iter": ("100", "200", "500", "1000")},
        scaled=True,
        weight=1.4,
    ),
    Estimator("linear regression", "sklearn.linear_model", regressor="LinearRegression", weight=0.7),
    Estimator(
        "ridge",
        "sklearn.linear_model",
        classifier="RidgeClassifier",
        regressor="Ridge",
        options={"alpha": ("0.1", "1.0", "10.0", "100.0")},
        probabilities=False,
        scaled=True,
        weight=0.8,
    ),
    Estimator(
        "lasso", "sklearn.linear_model", regressor="Lasso", options={"alpha": ("0.01", "0.1", "1.0")}, weight=0.5
    ),
    Estimator("naive Bayes", "sklearn.naive_bayes", classifier="GaussianNB"),
    Estimator(
        "nearest neighbours",
        "sklearn.neighbors",
        classifier="KNeighborsClassifier",
        regressor="KNeighborsRegressor",
        options={"n_neighbors": ("1", "3", "5", "10", "20", "50"), "weights": ('"uniform"', '"distance"')},
        scaled=True,
    ),
    Estimator(
        "decision tree",
        "sklearn.tree",
        classifier="DecisionTreeClassifier",
        regressor="DecisionTreeRegressor",
        options={"max_depth": _DEPTHS, "min_samples_leaf": ("1", "5", "20", "50")},
        takes_gaps=True,
    ),
    Estimator(
        "random forest",
        "sklearn.ensemble",
        classifier="RandomForestClassifier",
        regressor="RandomForestRegressor",
        options={"n_estimators": _TREES, "max_depth": _DEPTHS, "min_samples_leaf": ("1", "2", "5", "10")},
        takes_gaps=True,
        weight=1.4,
    ),
    Estimator(
        "extra trees",
        "sklearn.ensemble",
        classifier="ExtraTreesClassifier",
        regressor="ExtraTreesRegressor",
        options={"n_estimators": _TREES, "max_depth": _DEPTHS, "min_samples_leaf": ("1", "2", "5", "10")},
        takes_gaps=True,
    ),
    Estimator(
        "histogram boosting",
        "sklearn.ensemble",
        classifier="HistGradientBoostingClassifier",
        regressor="HistGradientBoostingRegressor",
        options={
            "max_iter": ("10", "20", "50", "100"),
            "learning_rate": _RATES,
            "max_leaf_nodes": ("4", "8", "15", "31"),
        },
        takes_gaps=True,
        weight=1.2,
    ),
    Estimator(
        "gradient boosting",
        "sklearn.ensemble",
        classifier="GradientBoostingClassifier",
        regressor="GradientBoostingRegressor",
        options={"n_estimators": ("10", "20", "40", "60"), "learning_rate": _RATES, "max_depth": ("1", "2", "3", "4")},
    ),
    Estimator(
        "AdaBoost",
        "sklearn.ensemble",
        classifier="AdaBoostClassifier",
        regressor="AdaBoostRegressor",
        options={"n_estimators": ("10", "20", "40"), "learning_rate": ("0.1", "0.5", "1.0")},
        weight=0.7,
    ),
    Estimator(
        "bagging",
        "sklearn.ensemble",
        classifier="BaggingClassifier",
        regressor="BaggingRegressor",
        options={"n_estimators": ("5", "10", "20")},
        takes_gaps=True,
        weight=0.6,
    ),
    Estimator(
        "discriminant analysis",
        "sklearn.discriminant_analysis",
        classifier="LinearDiscriminantAnalysis",
        weight=0.8,
    ),
    Estimator(
        "support vectors",
        "sklearn.svm",
        classifier="SVC",
        regressor="SVR",
        options={"C": ("0.1", "1.0", "10.0"), "gamma": ('"scale"', "0.01", "0.1")},
        probabilities=False,
        scaled=True,
        weight=0.7,
    ),
)
"""Every family for tables; texts and images use the fast ones of them."""

_CLASSES = {name: e.family for e in FAMILIES for name in (e.classifier, e.regressor) if name}


def family_of(program: str) -> str:
    """Return the family of the estimator that ``program`` constructs first, ``other`` when it is none of ours."""
    found = [
        (match.start(), family) for name, family in _CLASSES.items() if (match := re.search(rf"\b{name}\(", program))
    ]
    return min(found)[1] if found else "other"
