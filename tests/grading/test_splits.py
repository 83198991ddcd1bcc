"""The reward firewall: whole units, both parts complete, the same on every machine."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mle_gym.grading.splits import CannotCut, cut, hash_rank

units_and_classes = st.lists(st.tuples(st.integers(0, 40), st.sampled_from("abc")), min_size=1, max_size=120)


@given(units_and_classes, st.text(max_size=5), st.sampled_from([0.2, 0.5, 0.7]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_properties(rows: list[tuple[int, str]], salt: str, fraction: float, stratify: bool) -> None:
    units, classes = [f"u{unit}" for unit, _ in rows], [label for _, label in rows]
    try:
        mask = cut(units, salt, classes if stratify else None, fraction)
    except CannotCut:
        # Two units of each class would have sufficed: then the cut must have worked.
        per_class = {label: {u for u, c in zip(units, classes, strict=True) if c == label} for label in set(classes)}
        one_class_units = all(
            len({c for u, c in zip(units, classes, strict=True) if u == unit}) == 1 for unit in set(units)
        )
        wanted = per_class.values() if stratify else [set(units)]
        assert not (one_class_units and fraction == 0.5 and all(len(found) >= 4 for found in wanted))
        return
    first = {u for u, inside in zip(units, mask, strict=True) if inside}
    second = {u for u, inside in zip(units, mask, strict=True) if not inside}
    assert not first & second
    assert len(first) >= 2
    assert len(second) >= 2
    if stratify:
        assert {c for c, inside in zip(classes, mask, strict=True) if inside} == set(classes)
        assert {c for c, inside in zip(classes, mask, strict=True) if not inside} == set(classes)
    assert (cut(units, salt, classes if stratify else None, fraction) == mask).all()


def test_each_class_is_halved() -> None:
    classes = ["rare"] * 9 + ["common"] * 1001
    mask = cut([str(i) for i in range(1010)], "salt", classes)
    public = Counter(c for c, inside in zip(classes, mask, strict=True) if inside)
    assert public["rare"] in (4, 5)
    assert public["common"] in (500, 501)
    assert mask.sum() == 505


@pytest.mark.parametrize("fraction", [0.05, 0.2, 0.8, 0.95])
def test_a_class_of_two_is_on_both_sides(fraction: float) -> None:
    classes = ["rare"] * 2 + ["common"] * 98
    mask = cut([str(i) for i in range(100)], "salt", classes, fraction)
    assert mask[:2].sum() == 1
    assert abs(mask.sum() - 100 * fraction) <= 1


def test_the_salt_decides() -> None:
    units = [str(i) for i in range(400)]
    one, two = cut(units, "a"), cut(units, "b")
    # Two independent halvings agree on about half of the rows: 200 with a standard deviation of 10.
    assert 150 < (one == two).sum() < 250


def test_a_unit_goes_by_its_name_not_by_its_place() -> None:
    units = [f"patient-{i // 5}" for i in range(500)]
    order = np.random.default_rng(0).permutation(500)
    assert (cut([units[i] for i in order], "s") == cut(units, "s")[order]).all()


def test_ranks_are_those_of_sha256() -> None:
    keys = ["x", "y", "z", "w"]
    expected = sorted(keys, key=lambda key: hashlib.sha256(b"salt\x1f" + key.encode()).hexdigest())
    assert [keys[i] for i in hash_rank(keys, "salt")] == expected


@pytest.mark.parametrize(
    ("units", "classes", "message"),
    [
        (["a"], None, "1 unit"),
        (["a", "b", "c"], None, "3 unit"),
        (["a", "b", "c", "d"], ["x", "x", "x", "y"], "no row of class 'y'"),
        (["a", "a", "a", "a"], ["x", "y", "x", "y"], "1 unit"),
    ],
)
def test_too_little_to_cut(units: list[str], classes: list[str] | None, message: str) -> None:
    with pytest.raises(CannotCut, match=message):
        cut(units, "s", classes)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"inside \(0, 1\)"):
        cut(["a"] * 10, "s", None, 1.0)
    with pytest.raises(ValueError, match="must be equal"):
        cut(["a", "b"], "s", ["x"])
