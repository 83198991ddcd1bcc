"""Model families, judged on programs whose family is plain to a reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainers.common.families import family


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from sklearn.linear_model import LogisticRegression\nm = LogisticRegression()", "linear"),
        ("from sklearn.linear_model import Ridge as R\nR(alpha=2).fit(x, y)", "linear"),
        ("import sklearn.svm as s\ns.SVC().fit(x, y)", "support vectors"),
        ("import sklearn.tree\nsklearn.tree.DecisionTreeClassifier()", "tree"),
        ("from sklearn import neighbors\nneighbors.KNeighborsRegressor(3)", "neighbours"),
        ("from sklearn.ensemble import HistGradientBoostingClassifier as H\nH()", "boosting"),
        ("from sklearn.ensemble import AdaBoostRegressor\nAdaBoostRegressor()", "boosting"),
        ("from sklearn.ensemble import ExtraTreesRegressor\nExtraTreesRegressor()", "forest"),
        ("import lightgbm as lgb\nd = lgb.Dataset(x)\nm = lgb.LGBMClassifier()", "boosting"),
        ("import torch.nn as nn\nnet = nn.Linear(3, 1)", "neural network"),
        # The last one constructed wins; an import alone is no model; nor is a data container.
        (
            "from sklearn.dummy import DummyClassifier\nfrom sklearn.svm import SVC\nDummyClassifier()\nSVC()",
            "support vectors",
        ),
        ("from sklearn.linear_model import LogisticRegression", ""),
        ("import lightgbm as lgb\nlgb.Dataset(x)", ""),
        ("from sklearn.preprocessing import StandardScaler\nStandardScaler()", ""),
        ("this is no Python", ""),
        ("x = '\\d'", ""),
    ],
)
def test_families(source: str, expected: str) -> None:
    assert family(source) == expected


@given(st.text())
def test_any_text_has_an_answer(source: str) -> None:
    assert isinstance(family(source), str)
