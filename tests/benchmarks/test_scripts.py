"""The scripts run from end to end in their quick mode and save what they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def run(module: str, *arguments: str | Path, cwd: Path = ROOT) -> str:
    """Run ``python -m module`` and return what it printed."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def load(path: Path) -> dict[str, Any]:
    """Read a benchmark's JSON file and check what every one holds."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert document["machine"]["cores"] == len(os.sched_getaffinity(0))
    assert document["options"]["seed"] == 0
    return document


@pytest.mark.slow
def test_overhead(tmp_path: Path) -> None:
    printed = run("benchmarks.overhead", "--quick", "--json", tmp_path / "overhead.json")
    assert "seed 0, quick" in printed
    results = load(tmp_path / "overhead.json")["results"]
    assert 0 < results["import_s"] < 5
    assert results["program_s"] + results["outside_s"] == pytest.approx(results["step_s"], rel=0.5)
    assert results["outside_without_setup_s"] <= results["outside_s"]
    assert 0.2 < results["pool_busy"] <= 1.0


@pytest.mark.slow
def test_duration_bias(tmp_path: Path) -> None:
    printed = run("benchmarks.duration_bias", "--quick", "--json", tmp_path / "bias.json")
    assert "Where G of the slowest is at least 0.2" in printed
    results = load(tmp_path / "bias.json")["results"]
    bias = {name: row["weights"] for name, row in results["bias"].items()}
    # Without drops the paper's weight is a bonus of slow actions; where nearly all are dropped it is too little.
    assert bias["oldest_first, lookahead 3"]["duration"]["share_bias"][0] > 0.4
    assert bias["race, m = 2, cancel"]["duration"]["share_bias"][0] < -0.15
    assert abs(bias["the same, batches of 2048"]["duration"]["share_bias"][0]) < 0.05
    assert bias["oldest_first, lookahead 3"]["inclusion"] == bias["oldest_first, lookahead 3"]["none"]
    sleepers = results["sleepers"]
    assert sleepers["duration, wall"]["mass"][0] == pytest.approx(10 / 11, abs=0.02)
    assert sleepers["duration, cpu"]["mass"][0] == pytest.approx(0.5, abs=0.02)
    assert sleepers["duration, wall"]["push"][0] > sleepers["duration, cpu"]["push"][0] + 0.5
    real = results["real_sleep"]
    assert real["oldest_first"]["trained"] == pytest.approx(real["oldest_first"]["launched"])
    assert real["race, m = 1.5, cancel"]["trained"] < 0.5 * real["race, m = 1.5, cancel"]["launched"]


@pytest.mark.slow
def test_controls(tmp_path: Path) -> None:
    out = tmp_path / "out"
    printed = run(
        "benchmarks.controls", "--quick", "--config", ROOT / "recipes" / "demo.toml", "--out", out,
        "--arms", "start", "full", "shuffled", "own data", "warm start",
    )  # fmt: skip
    results = load(out / "controls.json")["results"]
    assert list(results) == ["start", "full", "shuffled", "own data", "warm start"]
    for arm, (row,) in results.items():
        assert arm in printed
        assert 0 <= row["valid_share"] <= 1
        assert row["programs"] == (16 if arm in ("full", "shuffled", "own data") else 0)
    assert (out / "controls.svg").read_text(encoding="utf-8").startswith("<svg")


def test_unknown_arm_is_one_sentence() -> None:
    command = [sys.executable, "-m", "benchmarks.controls", "--arms", "ful"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert result.returncode == 1
    assert result.stderr.strip().startswith("There is no arm 'ful'")
