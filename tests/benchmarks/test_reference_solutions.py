"""Where medal thresholds come from: the rule by hand, and two real solutions on a real task."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.reference_solutions import REFERENCES, Result, main, thresholds
from mle_gym.tasks import get_task
from mle_gym.tasks.offline.table import OFFLINE_TASKS


def results(baseline: float, *scores: float) -> list[Result]:
    rows = [Result("baseline", True, baseline, 0.0, 0.0, 0.0)]
    return rows + [Result(str(i), False, score, 0.0, 0.0, 0.0) for i, score in enumerate(scores)]


def test_the_rule() -> None:
    found = thresholds("t", results(0.5, 0.4, 0.71239, 0.6, 0.8, 0.75), higher_is_better=True)
    assert (found.gold, found.silver, found.bronze, found.median) == (0.8, 0.75, 0.6, 0.5)
    # Rounding never puts a threshold out of the reach of its own solution.
    found = thresholds("t", results(3.00001, 2.00001, 1.00001, 0.50009), higher_is_better=False)
    assert (found.gold, found.silver, found.bronze, found.median) == (0.5001, 1.0001, 2.0001, 3.0001)


def test_too_few_rungs() -> None:
    with pytest.raises(ValueError, match="2 solutions beat the baseline; at least three must"):
        thresholds("t", results(0.5, 0.6, 0.7, 0.4), higher_is_better=True)
    with pytest.raises(ValueError, match="0 baselines"):
        thresholds("t", results(0.5, 0.6)[1:], higher_is_better=True)


def test_every_task_has_solutions_and_thresholds() -> None:
    assert set(REFERENCES) == {task.name for task in OFFLINE_TASKS}
    for references in REFERENCES.values():
        assert sum(reference.baseline for reference in references) == 1
        assert len(references) >= 4


def test_quick_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MLE_GYM_DATA", str(tmp_path / "data"))
    path = tmp_path / "out.json"
    assert main(["--quick", "--json", str(path), "--tasks", "credit-default", "co2-forecast"]) == 0
    found = json.loads(path.read_text())["results"]
    bars = get_task("credit-default").thresholds
    assert bars is not None
    plain, linear = found["credit-default"]["solutions"]
    # The committed thresholds are these solutions' scores.
    assert plain["score"] == pytest.approx(bars.median, abs=2e-4)
    assert linear["score"] > plain["score"] + 0.03
    assert "plain linear (baseline)" in capsys.readouterr().out


def test_thresholds_are_written_from_a_whole_run_only(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="--write needs every task"):
        main(["--quick", "--write"])
