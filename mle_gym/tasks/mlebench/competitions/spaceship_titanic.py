"""Spaceship Titanic: which passengers were carried off to another dimension?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import words
from mle_gym.tasks.mlebench.labels import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of passengers with the right answer."""
    return accuracy(submission, answers, "PassengerId", "Transported", "True or False")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled passengers."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.drop(columns="Transported"), public / "test.csv")
    write_csv(test[["PassengerId"]].assign(Transported=False), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Invented passengers in groups: sleepers are carried off more often, those who spend on spas less often."""
    groups = {"tiny": 260, "small": 2600}[size]
    members = rng.choice([1, 1, 1, 2, 2, 3, 4], groups)
    group = np.repeat(np.arange(1, groups + 1), members)
    number = np.concatenate([np.arange(1, count + 1) for count in members])
    rows = len(group)
    planet = rng.choice(["Earth", "Europa", "Mars"], groups, p=[0.54, 0.25, 0.21])[group - 1]
    deck = np.where(planet == "Europa", rng.choice(list("ABC"), groups)[group - 1], rng.choice(list("EFG"), rows))
    sleeps = rng.random(rows) < 0.36
    age = np.where(rng.random(rows) < 0.1, rng.integers(0, 13, rows), rng.normal(31, 12, rows).clip(13, 79).round())
    spent = np.exp(rng.normal(5, 2, (rows, 5))) * (rng.random((rows, 5)) < 0.45)
    spent[sleeps | (age < 13)] = 0
    spent = np.round(spent)
    room, food, mall, spa, deck_fun = np.log1p(spent).T
    signal = 1.5 * sleeps + 0.8 * (planet == "Europa") - 0.35 * (room + spa + deck_fun) + 0.2 * (food + mall)
    signal += 0.9 * (age < 13) + 0.3 * rng.normal(size=groups)[group - 1]
    carried = rng.random(rows) < 1 / (1 + np.exp(np.quantile(signal, 0.35) - signal))
    given, family = words(rng, 300), words(rng, 200)
    kin = rng.choice(family, groups)[group - 1]
    table = pd.DataFrame(
        {
            "PassengerId": [f"{who:04d}_{which:02d}" for who, which in zip(group, number, strict=True)],
            "HomePlanet": planet,
            "CryoSleep": sleeps,
            "Cabin": [f"{d}/{c}/{s}" for d, c, s in zip(deck, group // 4, rng.choice(["P", "S"], rows), strict=True)],
            "Destination": rng.choice(["55 Cancri e", "PSO J318.5-22", "TRAPPIST-1e"], rows, p=[0.2, 0.1, 0.7]),
            "Age": age,
            "VIP": rng.random(rows) < 0.02,
            **dict(zip(("RoomService", "FoodCourt", "ShoppingMall", "Spa", "VRDeck"), spent.T, strict=True)),
            "Name": [f"{a} {b}".title() for a, b in zip(rng.choice(given, rows), kin, strict=True)],
        }
    )
    for column in table.columns[1:]:
        table[column] = table[column].astype(object).where(rng.random(rows) > 0.02)
    write_csv(table.assign(Transported=carried), raw / "train.csv")
