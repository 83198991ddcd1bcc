"""The throughput benchmark counts what it says."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from benchmarks.sleepers import ENV_ID, Trace, draw_trace, ideal_completions, play
from benchmarks.throughput import Measured, busy_share, verdicts
from tests.benchmarks.test_scripts import load, run


def test_durations_are_log_normal_with_the_mean_asked_for() -> None:
    draws = np.log(draw_trace(1.2, 5.0, 20_000, seed=0))
    # mean of the logarithm: ln m - s^2 / 2; standard errors are s / sqrt(n) = 0.0085 and s / sqrt(2 n) = 0.006.
    assert draws.mean() == pytest.approx(math.log(5.0) - 0.72, abs=0.035)
    assert draws.std() == pytest.approx(1.2, abs=0.025)
    assert draw_trace(0.0, 5.0, 3, seed=0) == pytest.approx([5.0] * 3)
    assert draw_trace(1.2, 5.0, 5, seed=1) == draw_trace(1.2, 5.0, 5, seed=1) != draw_trace(1.2, 5.0, 5, seed=2)


def test_the_limit_is_that_of_slots_which_never_wait() -> None:
    # One slot: ends at 1, 3, 6, 7, ...; two slots: 1, 2, 4 (1 + 3), 3 (2 + 1), 5 (3 + 2), ...
    assert [ideal_completions([1.0, 2.0, 3.0], 1, until) for until in (0.5, 1.0, 5.9, 6.0, 7.0)] == [0, 1, 2, 3, 4]
    assert [ideal_completions([1.0, 2.0, 3.0], 2, until) for until in (1.0, 2.0, 3.0, 4.0, 5.0)] == [1, 2, 3, 4, 5]
    # In the long run slots / mean.
    lengths = draw_trace(1.2, 5.0, 40_000, seed=3)
    assert ideal_completions(lengths, 8, 10_000.0) == pytest.approx(8 * 10_000 / 5.0, rel=0.04)


def test_busy_is_the_share_of_the_slots_inside_programs() -> None:
    runs = [(-1.0, 1.0), (0.0, 2.0), (2.0, 4.0), (3.0, 9.0), (20.0, 21.0)]
    # Inside [0, 4]: 1 + 2 + 2 + 1 of 8.
    assert busy_share(runs, 2, 0.0, 4.0) == pytest.approx(6 / 8)


def test_verdicts_compare_means() -> None:
    def side(arm: str, trained: int) -> Measured:
        return Measured(arm, 1.2, trained, 100.0, 160, 0.9, 0.1, 0.1)

    assert side("ours", 150).per_hour == 5400
    assert side("ours", 152).of_limit == 0.95
    sentences = verdicts([side("ours", 150), side("trl", 50), side("ours", 130), side("trl", 90)])
    assert sentences == ["sigma 1.2: ours trains on 2.00 times as many samples as trl"]


def test_a_sleeping_program_runs_in_the_sandbox_and_pays_by_the_text() -> None:
    trace = Trace([0.3, 0.05])
    play(trace)
    env = gym.make(ENV_ID)
    env.reset(seed=0)
    _, first, _, _, info = env.step("one")
    env.reset(seed=0)
    _, second, _, _, other = env.step("two")
    env.close()
    assert 0.3 <= info["duration"] < 3.0
    assert 0.05 <= other["duration"] < 3.0
    assert info["outcome"] == "no_submission"
    assert "time.sleep(0.3000)" in info["program"]
    assert 0 <= first < 1
    assert first != second
    (begin, end), (later, _) = trace.runs
    assert end - begin == pytest.approx(info["duration"])
    assert later >= end


@pytest.mark.slow
def test_ours_alone_needs_no_trl(tmp_path: Path) -> None:
    printed = run("benchmarks.throughput", "--quick", "--arms", "ours", "--json", tmp_path / "throughput.json")
    assert "--quick: this decides nothing." in printed
    results = load(tmp_path / "throughput.json")["results"]
    (turn,) = results["turns"]
    assert turn["trained"] % 16 == 0
    assert turn["trained"] > 0
    assert 0 < turn["busy"] <= 1
    assert turn["per_hour"] == pytest.approx(3600 * turn["trained"] / turn["seconds"])


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("trl") is None, reason="trl is not installed; pip install 'mle-gym[trl]'")
def test_against_trl(tmp_path: Path) -> None:
    printed = run("benchmarks.throughput", "--quick", "--json", tmp_path / "throughput.json")
    turns = load(tmp_path / "throughput.json")["results"]["turns"]
    assert [turn["arm"] for turn in turns] == ["ours", "trl", "trl-ahead"]
    for turn in turns:
        assert turn["trained"] <= turn["limit"] + 16
        assert 0 < turn["busy"] <= 1
        assert 0 < turn["generating"] < 1
        assert 0 < turn["training"] < 1
    assert turns[2]["trained"] % 64 == 0
    assert "times as many samples as trl-ahead" in printed
