"""References for time series: the last years from the earlier ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.tseries.holiday import USFederalHolidayCalendar
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.preprocessing import OneHotEncoder

from benchmarks.references.folder import Array, Folder, Reference

__all__ = ["CARBON", "RIDERS"]


def _years(table: pd.DataFrame) -> Array:
    """Time in years."""
    dates = pd.to_datetime(table["date"])
    return (dates.dt.year + (dates.dt.day_of_year - 1) / 365.25).to_numpy()


def _waves(years: Array, degree: int, harmonics: int) -> Array:
    """A polynomial of time and waves of a year's length and its fractions."""
    time = (years - 1990) / 10
    angles = 2 * np.pi * np.outer(years, np.arange(1, harmonics + 1))
    return np.column_stack([*(time**k for k in range(1, degree + 1)), np.sin(angles), np.cos(angles)])


def _carbon_line(folder: Folder, seed: int) -> Array:
    """A straight line and one wave, through all years."""
    x, test = _waves(_years(folder.train), 1, 1), _waves(_years(folder.test), 1, 1)
    return np.asarray(LinearRegression().fit(x, folder.labels).predict(test))


def _carbon_curve(folder: Folder, seed: int) -> Array:
    """A parabola and three waves, through all years."""
    x, test = _waves(_years(folder.train), 2, 3), _waves(_years(folder.test), 2, 3)
    return np.asarray(LinearRegression().fit(x, folder.labels).predict(test))


def _carbon_repeat(folder: Folder, seed: int) -> Array:
    """The last year again, plus the mean growth of the last ten years."""
    years, test, y = _years(folder.train), _years(folder.test), folder.labels.to_numpy()
    start = years.max()
    growth = np.polyfit(years[years > start - 10], y[years > start - 10], 1)[0]
    ahead = np.ceil(test - start)
    return np.asarray(np.interp(test - ahead, years, y) + growth * ahead)


def _carbon_recent(folder: Folder, seed: int) -> Array:
    """Waves from the parabola's fit, then a line through what remains of the last fifteen years."""
    years, test, y = _years(folder.train), _years(folder.test), folder.labels.to_numpy()
    recent = years > years.max() - 15
    model = LinearRegression().fit(_waves(years[recent], 1, 3), y[recent])
    level = np.mean((y - model.predict(_waves(years, 1, 3)))[years > years.max() - 1])
    return np.asarray(model.predict(_waves(test, 1, 3)) + level)


CARBON: tuple[Reference, ...] = (
    Reference("line and wave", _carbon_line, baseline=True),
    Reference("parabola and waves", _carbon_curve),
    Reference("last year and growth", _carbon_repeat),
    Reference("recent line and waves", _carbon_recent),
)
"""co2-forecast."""


def _calendar(table: pd.DataFrame) -> pd.DataFrame:
    """Calendar features: weekday, season, holidays and the days around them."""
    dates = pd.to_datetime(table["date"])
    days = USFederalHolidayCalendar().holidays(dates.min() - pd.Timedelta("9D"), dates.max() + pd.Timedelta("9D"))
    out = pd.DataFrame({"years": _years(table), "weekday": dates.dt.day_of_week, "day": dates.dt.day_of_year})
    out["holiday"] = dates.isin(days)
    out["before"] = (dates + pd.Timedelta("1D")).isin(days)
    out["after"] = (dates - pd.Timedelta("1D")).isin(days)
    out["friday"] = (dates.dt.month == 11) & (dates.dt.day_of_week == 4) & out["after"]
    out["christmas"] = ((dates.dt.month == 12) & (dates.dt.day >= 23)).astype(int)
    out["eve"] = (dates.dt.month == 12) & dates.dt.day.isin([24, 31])
    return out.astype(float)


def _riders_weekdays(folder: Folder, seed: int) -> Array:
    """The median of each weekday over all years."""
    weekday = pd.to_datetime(folder.train["date"]).dt.day_of_week
    medians = folder.labels.groupby(weekday).median()
    return pd.to_datetime(folder.test["date"]).dt.day_of_week.map(medians).to_numpy()


def _riders_recent(folder: Folder, seed: int) -> Array:
    """The median of each weekday over the last two years."""
    dates = pd.to_datetime(folder.train["date"])
    recent = dates > dates.max() - pd.Timedelta(days=730)
    medians = folder.labels[recent].groupby(dates[recent].dt.day_of_week).median()
    return pd.to_datetime(folder.test["date"]).dt.day_of_week.map(medians).to_numpy()


def _riders_linear(folder: Folder, seed: int) -> Array:
    """Weekday, season, holidays and trend in a linear model of the last six years."""
    return _calendar_model(folder)[1]


def _calendar_model(folder: Folder) -> tuple[Array, Array]:
    """Predictions of the linear calendar model for train and test."""
    train, test = _calendar(folder.train), _calendar(folder.test)
    recent = train["years"] > train["years"].max() - 6
    coder = OneHotEncoder(sparse_output=False).fit(train[["weekday", "holiday"]])

    def features(table: pd.DataFrame) -> Array:
        flags = table[["holiday", "before", "after", "friday", "christmas", "eve"]]
        working = (table["weekday"] < 5).to_numpy()[:, None]
        season = _waves(table["years"].to_numpy(), 1, 3)
        return np.column_stack([coder.transform(table[["weekday", "holiday"]]), flags, flags * working, season])

    model = RidgeCV(np.logspace(-3, 3, 13)).fit(features(train[recent]), folder.labels[recent])
    return model.predict(features(train)), model.predict(features(test))


def _trees(folder: Folder, model: Any, target: Array, since: float) -> Array:
    """Trees on calendar, weather and games of the last ``since`` years."""
    columns = [name for name in folder.features if name != "date"]
    train, test = (pd.concat([_calendar(t), t[columns]], axis=1) for t in (folder.train, folder.test))
    recent = (train["years"] > train["years"].max() - since).to_numpy()
    # A tree cannot go on with a trend, so it does not see the time.
    model.fit(train[recent].drop(columns="years"), target[recent])
    return np.asarray(model.predict(test.drop(columns="years")))


def _forest(seed: int) -> ExtraTreesRegressor:
    return ExtraTreesRegressor(200, max_features=0.5, min_samples_leaf=3, random_state=seed)


def _boosting(seed: int) -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(
        loss="absolute_error", learning_rate=0.1, max_iter=150, max_leaf_nodes=15, random_state=seed
    )


def _riders_boosting(folder: Folder, seed: int) -> Array:
    return _trees(folder, _boosting(seed), folder.labels.to_numpy(), since=3)


def _riders_both(folder: Folder, seed: int) -> Array:
    """The linear calendar model, then trees on what it leaves."""
    fitted, ahead = _calendar_model(folder)
    left = folder.labels.to_numpy() - fitted
    rest = [_trees(folder, model, left, since=4) for model in (_forest(seed), _boosting(seed))]
    return np.asarray(ahead + np.mean(rest, axis=0))


RIDERS: tuple[Reference, ...] = (
    Reference("weekdays", _riders_weekdays, baseline=True),
    Reference("recent weekdays", _riders_recent),
    Reference("boosting", _riders_boosting),
    Reference("calendar, linear", _riders_linear),
    Reference("calendar, then trees", _riders_both),
)
"""chicago-ridership."""
