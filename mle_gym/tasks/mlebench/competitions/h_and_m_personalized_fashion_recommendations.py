"""H&M Personalized Fashion Recommendations: what does a customer buy in the coming week?"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id, image_bytes, sentence, words
from mle_gym.tasks.mlebench.rankings import guesses, mean_average_precision

_SAMPLE = (
    "0706016001 0706016002 0372860001 0610776002 0759871002 0464297007 0372860002 0610776001 0399223001 0706016003 "
    "0720125001 0156231001"
)
_DAYS = 60
_PIECE = 2_000_000
"""Purchases that are read at once."""


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """MAP@12 over the customers of the answers; other customers are ignored."""
    require_columns(submission, "customer_id", "prediction")
    if surplus := [str(name) for name in submission.columns if name not in ("customer_id", "prediction")]:
        raise InvalidSubmission(
            f"The submission has the column {surplus[0]!r}; expected customer_id and prediction only."
        )
    mine = submission[submission["customer_id"].isin(answers["customer_id"])].sort_values("customer_id", kind="stable")
    truth = answers.sort_values("customer_id", kind="stable")
    missing = ~truth["customer_id"].isin(mine["customer_id"]).to_numpy()
    if missing.any():
        first = truth["customer_id"].to_numpy()[missing][0]
        raise InvalidSubmission(
            f"Column 'customer_id': {int(missing.sum()):,} of the {len(truth):,} customers in the answers are missing, "
            f"the first is {say(first)}; expected all customers of the sample submission."
        )
    # A customer who stands twice moves the rows after it against the answers, as in MLE-bench.
    ranked = guesses(mine["prediction"].iloc[: len(truth)])
    return mean_average_precision([set(row) for row in guesses(truth["prediction"])], ranked, 12)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out the purchases of the last eight days, the last day and the seven before it.

    The 32 million purchases of the real data are read in pieces.
    """
    purchases = raw / "transactions_train.csv"

    def pieces(**options: Any) -> Iterator[pd.DataFrame]:
        reader: Any = read_csv(purchases, chunksize=_PIECE, **options)
        return iter(reader)

    last = max(piece["t_dat"].max() for piece in pieces(usecols=["t_dat"]))
    first_day = str((pd.Timestamp(last) - pd.Timedelta(days=7)).date())
    later = []
    for number, piece in enumerate(pieces(dtype={"price": float})):
        held = piece["t_dat"] >= first_day
        later.append(piece.loc[held, ["customer_id", "article_id"]])
        write_csv(piece[~held], public / "transactions_train.csv", mode="a" if number else "w", header=number == 0)
    # Articles are read as numbers, so they lose their leading zero; as in MLE-bench.
    bought = pd.concat(later).astype({"article_id": str}).groupby("customer_id")["article_id"]
    write_csv(bought.agg(" ".join).rename("prediction").reset_index(), private / "answers.csv")
    for name in ("sample_submission.csv", "articles.csv", "customers.csv"):
        copy_files([(raw / name, public / name)])
    shutil.copytree(raw / "images", public / "images")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Customers with a favourite garment and colour, who like what is new and buy things again."""
    count, articles = {"tiny": (140, 90), "small": (1200, 420)}[size]
    shop = _articles(rng, articles)
    customers = [hex_id(rng, 64) for _ in range(count)]
    age = rng.gamma(9, 4, count).clip(16, 90).astype(int)
    table = pd.DataFrame({"customer_id": customers, "FN": np.where(rng.random(count) < 0.35, 1.0, np.nan)})
    table["Active"] = table["FN"].where(rng.random(count) < 0.97)
    table["club_member_status"] = rng.choice(["ACTIVE", "PRE-CREATE", "LEFT CLUB"], count, p=[0.92, 0.07, 0.01])
    table["fashion_news_frequency"] = np.where(table["FN"] == 1.0, "Regularly", "NONE")
    table["age"], table["postal_code"] = age, [hex_id(rng, 64) for _ in range(count)]

    group, colour = shop["garment_group_no"].to_numpy() - 1001, shop["colour_group_code"].to_numpy()
    launch, price = rng.uniform(-60, _DAYS - 9, articles), rng.lognormal(-3.6, 0.5, articles)
    appeal = rng.gamma(0.6, 1.0, articles) + 0.02
    rows = []
    for number in range(count):
        taste = np.where(group == (age[number] + rng.integers(4)) % 8, 6.0, 1.0)
        taste *= appeal * np.where(colour == rng.integers(6), 3.0, 1.0)
        owned: list[int] = []
        for day in np.unique(rng.integers(_DAYS, size=1 + rng.poisson(9))):
            weight = taste * np.exp(-np.abs(day - launch) / 25) * (launch <= day)
            for _ in range(rng.integers(1, 4)):
                again = owned and rng.random() < 0.3
                article = int(rng.choice(owned) if again else rng.choice(articles, p=weight / weight.sum()))
                owned.append(article)
                rows.append((int(day), customers[number], article, price[article] * rng.choice([1.0, 0.8])))
    bought = pd.DataFrame(rows, columns=["day", "customer_id", "article", "price"])
    bought = bought.sort_values("day", kind="stable").reset_index(drop=True)
    dates = pd.date_range("2020-09-22", periods=_DAYS, freq="-1D")[::-1].strftime("%Y-%m-%d")
    bought["t_dat"], bought["article_id"] = dates[bought["day"]], shop["article_id"].to_numpy()[bought["article"]]
    bought["sales_channel_id"] = rng.choice([1, 2], len(bought), p=[0.3, 0.7])
    columns = ["t_dat", "customer_id", "article_id", "price", "sales_channel_id"]
    write_csv(bought[columns], raw / "transactions_train.csv")
    write_csv(shop, raw / "articles.csv")
    write_csv(table, raw / "customers.csv")
    write_csv(table[["customer_id"]].assign(prediction=_SAMPLE), raw / "sample_submission.csv")
    tints = rng.uniform(30, 220, (6, 3))
    for article, tint in zip(shop["article_id"], tints[colour], strict=True):
        place = raw / "images" / article[:3]
        place.mkdir(parents=True, exist_ok=True)
        pixels = np.full((32, 24, 3), 245.0)
        pixels[4:28, 4:20] = tint + rng.normal(0, 10, (24, 16, 3))
        (place / f"{article}.jpg").write_bytes(image_bytes(pixels, "JPEG", quality=80))


def _articles(rng: np.random.Generator, count: int) -> pd.DataFrame:
    """Invent ``articles.csv``: every code has a name that goes with it."""
    vocabulary = words(rng, 120)
    product = rng.integers(108_775, 959_461, count)
    table = pd.DataFrame({"article_id": [f"0{code}{rng.integers(1, 20):03d}" for code in product]})
    table["product_code"] = product
    table["prod_name"] = [sentence(rng, vocabulary, 2).capitalize() for _ in range(count)]

    def coded(code: str, name: str, values: Any, first: int = 0) -> None:
        table[code], table[name] = values + first, [vocabulary[value + first % 7].capitalize() for value in values]

    garment, colour = rng.integers(8, size=count), rng.integers(6, size=count)
    coded("product_type_no", "product_type_name", garment * 3 + rng.integers(3, size=count), 250)
    table["product_group_name"] = [f"Garment {vocabulary[value]}" for value in garment // 2]
    coded("graphical_appearance_no", "graphical_appearance_name", rng.integers(10, size=count), 1_010_001)
    coded("colour_group_code", "colour_group_name", colour)
    coded("perceived_colour_value_id", "perceived_colour_value_name", colour // 2, 1)
    coded("perceived_colour_master_id", "perceived_colour_master_name", colour // 3, 2)
    coded("department_no", "department_name", rng.integers(30, size=count), 1201)
    index = rng.integers(5, size=count)
    table["index_code"], table["index_name"] = np.array(list("ABCDF"))[index], [vocabulary[40 + at] for at in index]
    coded("index_group_no", "index_group_name", index // 2, 1)
    coded("section_no", "section_name", rng.integers(20, size=count), 2)
    coded("garment_group_no", "garment_group_name", garment, 1001)
    table["detail_desc"] = [f"{sentence(rng, vocabulary, 9).capitalize()}." for _ in range(count)]
    return table
