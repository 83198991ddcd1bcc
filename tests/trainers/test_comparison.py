"""Before and after, as text."""

from __future__ import annotations

import math

from trainers.common.comparison import ROWS, comparison

TASK = "mle_gym/credit-default-v0"


def test_numbers_and_families_stand_side_by_side() -> None:
    before = {TASK: {"valid_share": 0.125, "mean_reward": -0.75, "families": {"linear": 6, "tree": 2}}}
    after = {TASK: {"valid_share": 0.875, "mean_reward": 0.5, "families": {"forest": 42, "linear": 14}}}
    rows = {label: (old, new) for label, old, new in comparison(before, after, TASK)}
    assert rows["valid programs"] == ("12%", "88%")
    assert rows["mean reward"] == ("-0.75", "0.5")
    # 42 / 56 and 14 / 56 after; 6 / 8 and 2 / 8 before. The most frequent family after training comes first.
    assert list(rows)[len(ROWS) :] == [f"share of valid programs: {name}" for name in ("forest", "linear", "tree")]
    assert rows["share of valid programs: forest"] == ("0%", "75%")
    assert rows["share of valid programs: linear"] == ("75%", "25%")
    assert rows["share of valid programs: tree"] == ("25%", "0%")


def test_what_is_not_known_is_a_dash() -> None:
    rows = {label: (old, new) for label, old, new in comparison({}, {TASK: {"best_public_score": math.nan}}, TASK)}
    assert set(rows.values()) == {("-", "-")}
    assert len(rows) == len(ROWS)
