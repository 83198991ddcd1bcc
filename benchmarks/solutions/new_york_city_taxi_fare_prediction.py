"""Taxi fares from distance, direction, time and the way to the airports: boosted trees on up to 200,000 rides."""

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import train_test_split

train = pd.read_csv("input/labels.csv", nrows=200_000)  # the rows are shuffled, so the first ones are a fair sample
test = pd.read_csv("input/test.csv")
train = train[train["fare_amount"].between(0.5, 250)].dropna()
AIRPORTS = {"jfk": (-73.781, 40.645), "lga": (-73.873, 40.775), "ewr": (-74.176, 40.69)}


def miles(x1, y1, x2, y2):
    """Distance of two places in degrees, on a flat map of the city."""
    return np.hypot((x1 - x2) * 52.4, (y1 - y2) * 69.0)


def features(frame):
    """Places, distances, direction and time."""
    places = [frame[f"{end}_{axis}"] for end in ("pickup", "dropoff") for axis in ("longitude", "latitude")]
    when = pd.to_datetime(frame["pickup_datetime"].str[:19])
    columns = [*places, frame["passenger_count"], when.dt.hour, when.dt.day_of_week, when.dt.year + when.dt.month / 12]
    columns += [miles(*places), np.arctan2(places[3] - places[1], places[2] - places[0])]
    for place in AIRPORTS.values():
        columns += [miles(*places[:2], *place), miles(*places[2:], *place)]
    return np.column_stack(columns)


x, y = features(train), train["fare_amount"].to_numpy()
fit, held = train_test_split(np.arange(len(x)), test_size=0.2, random_state=0)
model = HistGradientBoostingRegressor(max_iter=150, learning_rate=0.08, max_leaf_nodes=31, random_state=0)
guess = model.fit(x[fit], y[fit]).predict(x[held])
print("RMSE on held-out rides:", round(root_mean_squared_error(y[held], guess), 3))
fare = model.fit(x, y).predict(features(test)).clip(2.5)
pd.DataFrame({"key": test["key"], "fare_amount": fare}).to_csv("submission.csv", index=False)
