"""Shuffling, splitting and numbering of a data frame."""

from __future__ import annotations

import io
import zlib

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from mle_gym.tasks.offline.images import png
from mle_gym.tasks.offline.layout import by_order, by_rows, last, majority, mean, median, one_hot


def frame(rows: int = 200) -> pd.DataFrame:
    # Sorted by the answer: the worst case for ids that follow the source's order.
    return pd.DataFrame({"x": np.arange(rows), "y": np.repeat([0, 1], rows // 2)})


def test_rows_are_divided_completely() -> None:
    prepared = by_rows(frame(), "y", 60, "seed", majority, classes=True)
    assert list(prepared.train.columns) == ["id", "x", "y"]
    assert list(prepared.test.columns) == ["id", "x"]
    assert list(prepared.answers.columns) == ["id", "y"]
    assert sorted([*prepared.train["id"], *prepared.test["id"]]) == list(range(200))
    assert sorted([*prepared.train["x"], *prepared.test["x"]]) == list(range(200))
    assert prepared.answers["id"].tolist() == prepared.test["id"].tolist()
    assert len(prepared.test) == 60
    assert prepared.answers["y"].sum() == 30
    # The answer is the source row's, whatever the row's new place.
    assert ((prepared.test["x"] >= 100).astype(int).to_numpy() == prepared.answers["y"].to_numpy()).all()


def test_ids_do_not_follow_the_source() -> None:
    prepared = by_rows(frame(2000), "y", 600, "seed", majority)
    # No correlation: beyond 4 standard errors, 4 / sqrt(600), by chance once in 15,000 seeds.
    assert abs(np.corrcoef(prepared.test["id"], prepared.answers["y"])[0, 1]) < 0.164
    assert prepared.test["id"].is_monotonic_increasing


def test_the_seed_decides() -> None:
    one, same, other = (by_rows(frame(), "y", 60, seed, majority) for seed in ("a", "a", "b"))
    pd.testing.assert_frame_equal(one.train, same.train)
    assert set(one.test["x"]) != set(other.test["x"])


def test_order_is_kept_and_ids_do_not_tell_it() -> None:
    months = pd.Series([f"m{i // 10}" for i in range(200)])
    prepared = by_order(frame(), "y", 50, "seed", last, months)
    assert prepared.test["x"].tolist() == list(range(150, 200))
    assert sorted([*prepared.train["id"], *prepared.test["id"]]) == list(range(200))
    assert abs(np.corrcoef(prepared.train["id"], prepared.train["x"])[0, 1]) < 0.33
    assert prepared.answers["__unit__"].tolist() == [f"m{i // 10}" for i in range(150, 200)]
    assert prepared.constant == {"y": 1.0}


def test_one_hot() -> None:
    table = pd.DataFrame({"x": range(40), "kind": ["b", "a", "c", "a"] * 10})
    prepared = one_hot(by_rows(table, "kind", 12, "s", majority), "kind", {"a": "p_a", "b": "p_b", "c": "p_c"})
    assert list(prepared.answers.columns) == ["id", "p_a", "p_b", "p_c"]
    assert (prepared.answers[["p_a", "p_b", "p_c"]].sum(axis=1) == 1).all()
    assert prepared.answers["p_a"].tolist() == [int(x % 4 in (1, 3)) for x in prepared.test["x"]]
    assert prepared.constant == {"p_a": 0.333333, "p_b": 0.333333, "p_c": 0.333333}
    assert "kind" in prepared.train.columns


def test_constants_come_from_train() -> None:
    assert mean(pd.Series([1, 2, 4])) == 2.333
    assert median(pd.Series([1, 2, 40])) == 2.0
    assert majority(pd.Series(["b", "a", "b", "a"])) == "a"
    assert last(pd.Series([3, 1], index=[7, 9])) == 1.0


@pytest.mark.parametrize("shape", [(8, 8), (3, 5), (1, 1)])
def test_png_is_read_back(shape: tuple[int, int]) -> None:
    pixels = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    data = png(pixels)
    with Image.open(io.BytesIO(data)) as image:
        assert image.format == "PNG"
        assert (np.asarray(image) == pixels).all()
    # Stored, not compressed: no version of a compressor can change a byte.
    start = data.index(b"IDAT") + 4
    assert data[start : start + 2] == b"\x78\x01"
    assert zlib.decompress(data[start:-16])[1 : 1 + shape[1]] == pixels[0].tobytes()
