"""Ablations measure alike with and without partial credit, and repeat nothing that is finished."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks.ablations import ARMS, PAPER, interval, measure
from tests.benchmarks.test_scripts import ROOT, load, run
from trainers.common.config import load_config
from trainers.common.report.data import RunData


def record(version: int, outcome: str, reward: float, duration: float, valid: bool = True) -> dict[str, object]:
    return {"version": version, "outcome": outcome, "reward": reward, "duration": duration, "reward_valid": valid}


def test_every_arm_changes_the_recipe_and_the_paper_has_a_figure_for_it() -> None:
    recipe = ROOT / "recipes" / "ablations.toml"
    configs = {arm: load_config(recipe, changes) for arm, changes in ARMS.items()}
    assert len({config.to_toml() for config in configs.values()}) == len(ARMS)
    assert set(PAPER) == set(ARMS) - {"full"}
    full = configs["full"]
    assert (full.weights.rule, full.env.improve, full.env.kwargs["instrumenter"]) == ("duration", 0.5, "probe")


def test_partial_credit_is_left_out() -> None:
    config = load_config(None, ["env.kwargs.reward=normalized", "schedule.updates=20"])
    samples = [
        record(0, "scored", 0.5, 1.0),
        record(1, "runtime_error", -0.6, 3.0),
        record(1, "no_program", -1.0, 0.0),
        record(1, "infrastructure_error", 0.0, 9.0, valid=False),
        record(19, "scored", 0.8, 2.0),
        record(23, "scored", 0.6, 4.0),
    ]
    data = RunData(Path(), {}, samples, [{}] * 20, {}, {}, {"best_private_score": 0.7}, [])
    result = measure(data, config)
    assert result.reward[0] == pytest.approx((0.5 - 1 - 1) / 3)
    assert result.valid[0] == pytest.approx(1 / 3)
    assert result.seconds[0] == pytest.approx(2.0), "what never ran has no duration"
    assert all(math.isnan(value) for value in result.reward[1:9])
    assert (result.reward[9], result.valid[9], result.seconds[9]) == (pytest.approx(0.7), 1.0, 3.0)
    assert (result.updates, result.best_private_score) == (20, 0.7)
    with pytest.raises(SystemExit, match="normalized or paper, not 'medal'"):
        measure(data, load_config(None, ["env.kwargs.reward=medal"]))


def test_intervals() -> None:
    mean, half = interval([1.0, 2.0, 3.0, math.nan])
    # The table of Student's t: 4.303 for two degrees of freedom; the standard error is 1 / sqrt(3).
    assert (mean, half) == (2.0, pytest.approx(4.303 / math.sqrt(3), abs=1e-3))
    assert interval([5.0])[0] == 5.0
    assert math.isnan(interval([5.0])[1])


@pytest.mark.slow
def test_the_script_repeats_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("--quick", "--out", out, "--seeds", "0", "--arms", "full", "no instrumentation")
    run("benchmarks.ablations", *arguments)
    first = load(out / "ablations.json")["results"]["runs"]["mle_gym/credit-default-v0"]
    stamps = {path: path.stat().st_mtime_ns for path in out.rglob("summary.json")}
    assert len(stamps) == 2
    # One run is finished; the other one was stopped on its way.
    (out / "credit-default-v0" / "full-0" / "summary.json").unlink()
    printed = run("benchmarks.ablations", *arguments)
    assert "this decides nothing" in printed
    assert load(out / "ablations.json")["results"]["runs"]["mle_gym/credit-default-v0"] == first
    kept = out / "credit-default-v0" / "no-instrumentation-0" / "summary.json"
    assert kept.stat().st_mtime_ns == stamps[kept]
    assert (out / "credit-default-v0.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "+22.06 %" in printed
