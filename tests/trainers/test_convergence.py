from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainers.common.convergence import Convergence


def steps(rewards: list[float], **options: float) -> int | None:
    """Number of updates after which it says so."""
    watch = Convergence(**options)  # type: ignore[arg-type]
    for number, reward in enumerate(rewards, start=1):
        watch.update(reward)
        if watch.reached:
            return number
    return None


@pytest.mark.parametrize(
    ("rewards", "options", "expected"),
    [
        # Means of three: -, -, 1, 2, 3, 3, 3 ... : three without improvement after the fifth.
        ([0, 1, 2, 3, 4, 2, 3, 4], {"patience": 3, "window": 3}, 8),
        ([0.0] * 50, {"patience": 0, "window": 3}, None),
        ([5.0, *[0.0] * 50], {"patience": 4, "window": 1}, 5),
        # The lucky first batch is never compared with: the first full mean is 2.5, the second 0.
        ([5.0, *[0.0] * 50], {"patience": 4, "window": 2}, 6),
        ([float(n) for n in range(50)], {"patience": 1, "window": 5}, None),
        # Every update gains 0.1, never more than 0.25 above the last bar within two updates, but within three.
        ([0.1 * n for n in range(30)], {"patience": 2, "min_gain": 0.25, "window": 1}, 3),
        ([0.1 * n for n in range(30)], {"patience": 3, "min_gain": 0.25, "window": 1}, None),
        ([-10.0, -10.0, -10.0], {"patience": 2, "window": 1}, 3),
    ],
)
def test_when_it_stops(rewards: list[float], options: dict[str, float], expected: int | None) -> None:
    assert steps(rewards, **options) == expected


@given(st.lists(st.floats(-10, 10), max_size=40), st.integers(0, 40), st.integers(1, 5))
def test_a_restored_watch_goes_on_the_same(rewards: list[float], cut: int, window: int) -> None:
    whole, first = Convergence(3, 0.1, window), Convergence(3, 0.1, window)
    for reward in rewards[:cut]:
        first.update(reward)
    second = Convergence(3, 0.1, window)
    second.restore(json.loads(json.dumps(first.state())))
    for reward in rewards:
        whole.update(reward)
    for reward in rewards[cut:]:
        second.update(reward)
    assert whole.state() == second.state()
    assert whole.reached == second.reached
    assert math.isnan(whole.smoothed) == (len(rewards) < window)
