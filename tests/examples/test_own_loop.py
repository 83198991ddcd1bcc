"""A loop of one's own learns a bandit and runs real programs."""

from __future__ import annotations

from pathlib import Path

import pytest

import tests.trainers.bandit  # noqa: F401  (registers its ids)
from examples.own_loop import learn


def test_it_learns_a_bandit(tiny_folder: Path) -> None:
    means = learn(
        "Bandit-v0", updates=40, policy=str(tiny_folder), max_new_tokens=3, learning_rate=0.02, seed=1, env_kwargs={}
    )
    assert len(means) == 40
    # A uniform policy over ten letters earns -1.46 per pull; the best arm pays 1.
    assert sum(means[:3]) / 3 < -0.8
    assert sum(means[-5:]) / 5 > 0.0


@pytest.mark.slow
def test_it_runs_real_programs() -> None:
    means = learn(updates=2, batch_size=8, in_flight=12)
    assert len(means) == 2
    assert all(-1 <= mean <= 1 for mean in means)
