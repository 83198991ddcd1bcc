from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainers.async_ppo.run import run_training
from trainers.common.config import ConfigError, TrainConfig, load_config
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


def test_a_run_ends_at_convergence(bandit_config: TrainConfig) -> None:
    # A step size this small changes no reward, so the first full mean is about as good as any.
    config = dataclasses.replace(
        bandit_config,
        algorithm=dataclasses.replace(bandit_config.algorithm, learning_rate=1e-9),
        schedule=dataclasses.replace(
            bandit_config.schedule, updates=200, evaluate=0, patience=4, min_gain=0.5, smooth=3, checkpoint_every=3
        ),
    )
    assert run_training(config) == 0
    run = Path(config.run)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rewards = [row["reward_mean"] for row in rows]
    # By hand: the first mean of three is the bar, no later one lies 0.5 above it, and four such means follow.
    means = [sum(rewards[at - 2 : at + 1]) / 3 for at in range(2, len(rewards))]
    assert len(rows) == 3 + 4
    assert max(means[1:]) <= means[0] + 0.5
    assert [row["reward_smoothed"] for row in rows[2:]] == pytest.approx(means)
    assert rows[0]["reward_smoothed"] is None
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["ended"], summary["updates"]) == ("converged", 7)
    # What was converged stays so: a resumed run makes no further update.
    assert run_training(config, run) == 0
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 7


def test_a_run_without_patience_says_what_ended_it(bandit_config: TrainConfig) -> None:
    config = dataclasses.replace(
        bandit_config, schedule=dataclasses.replace(bandit_config.schedule, updates=2, evaluate=0)
    )
    assert run_training(config) == 0
    assert json.loads((Path(config.run) / "summary.json").read_text())["ended"] == "updates"
    assert "reward_smoothed" not in (Path(config.run) / "metrics.jsonl").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["schedule.patience=-1"], "schedule.patience must not be negative"),
        (["schedule.min_gain=-0.1"], "schedule.min_gain must not be negative"),
        (["schedule.smooth=0"], "schedule.smooth must be above 0"),
        (["schedule.updates=12", "schedule.patience=3"], "schedule.patience=3 can never end a run of 12 updates"),
        (["env.archive=last_of_slot"], "env.archive='last_of_slot' shows earlier programs, but env.improve is 0"),
        (["env.improve=0.5", "env.archive=last"], "env.archive must be one of 'top_k', 'last_of_slot'"),
        (["env.improve=0.5", "env.archive_size=0"], "env.archive_size must be above 0"),
    ],
)
def test_impossible_schedules(changes: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(None, changes)
