"""The published table against what its readers have recomputed, and runs beside it."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks.paper import OWN, main, read_runs
from benchmarks.published import COLUMNS, FAILED, RL, SCAFFOLDS, TASKS, UNKNOWN
from benchmarks.relative_improvement import best_per_task, relative_improvement
from mle_gym.tasks import get_task
from trainers.async_ppo.run import run_training
from trainers.common.config import TrainConfig

HIGHER = {"up": True, "down": False, "third": True}


def test_relative_improvement_by_hand() -> None:
    result = relative_improvement(
        {"up": 0.9, "down": 0.1, "third": 0.5}, {"up": 0.8, "down": 0.4, "third": 1.0}, HIGHER
    )
    assert result.by_task == pytest.approx({"up": 0.125, "down": 0.75, "third": -0.5})
    assert result.mean == pytest.approx(0.125)
    assert (result.wins, result.missing) == (2, {})
    # A negative baseline: from -2 to -1 is up by half of it.
    assert relative_improvement({"up": -1.0}, {"up": -2.0}, {"up": True}).mean == 0.5


def test_missing_cells_are_declared() -> None:
    ours, theirs = {"up": 0.9, "down": None, "third": 0.5}, {"up": 0.6, "down": 0.4, "third": math.nan}
    dropped = relative_improvement(ours, theirs, HIGHER)
    assert dropped.by_task == pytest.approx({"up": 0.5})
    assert dropped.missing == {"down": "no score", "third": "no baseline"}
    zero = relative_improvement(ours, theirs, HIGHER, missing="zero")
    assert zero.mean == pytest.approx(0.5 / 3)
    assert (zero.missing, zero.wins) == (dropped.missing, 1)
    with pytest.raises(ValueError, match="down has no score, so there is no relative improvement"):
        relative_improvement(ours, theirs, HIGHER, missing="raise")
    with pytest.raises(ValueError, match="missing='nan' is not known; choose from drop, zero, raise"):
        relative_improvement(ours, theirs, HIGHER, missing="nan")  # type: ignore[arg-type]
    assert relative_improvement({"up": 1.0}, {"up": 0.0}, {"up": True}).missing == {"up": "baseline 0"}
    nothing = relative_improvement({}, {}, HIGHER)
    assert math.isnan(nothing.mean)
    assert nothing.missing["up"] == "no score and no baseline"


def test_best_per_task() -> None:
    columns = [{"up": 0.5, "down": 0.5}, {"up": 0.7, "down": None}, {"down": 0.3}]
    assert best_per_task(columns, HIGHER) == {"up": 0.7, "down": 0.3}


def column(name: str) -> dict[str, float | None]:
    return {task.name: task.cells[COLUMNS.index(name)].mean for task in TASKS}


def test_the_table_gives_the_known_sums() -> None:
    higher = {task.name: task.higher_is_better for task in TASKS}
    gpt = relative_improvement(column(RL), column("GPT-4o AIDE 24h"), higher)
    assert (round(gpt.mean, 3), len(gpt.by_task), gpt.wins) == (0.244, 11, 8)
    best = relative_improvement(column(RL), best_per_task(map(column, SCAFFOLDS), higher), higher)
    assert (round(best.mean, 3), len(best.by_task), best.wins) == (0.166, 12, 9)
    claude = relative_improvement(column(RL), column("Claude-3.5-S AIDE"), higher)
    assert round(100 * sum(claude.by_task.values()), 1) == 255.6
    assert len(claude.by_task) == 7


def test_the_tasks_are_those_of_the_suite() -> None:
    assert len(TASKS) == 12
    for row in TASKS:
        assert get_task(row.name).higher_is_better == row.higher_is_better, row.name
        assert len(row.cells) == len(COLUMNS)
        assert row.cells[-1].mean is not None
    assert sum(cell is UNKNOWN for row in TASKS for cell in row.cells) == 12
    assert sum(cell is FAILED for row in TASKS for cell in row.cells) == 4


def run(folder: Path, task: str, score: float | None, *, data: str = "prepared", after: float | None = None) -> Path:
    env_id = f"mle_gym/{task}-v0"
    summary: dict[str, Any] = {
        "tasks": {env_id: {"best_private_score": score, "data": data, "reward_split": "public"}},
        "evaluation": {} if after is None else {"after": {env_id: {"best_private_score": after}}},
    }
    folder.mkdir()
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def test_own_runs_stand_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    runs = [
        run(tmp_path / "a", "leaf-classification", 0.3, after=0.2),
        run(tmp_path / "b", "leaf-classification", 0.4),
        run(tmp_path / "c", "random-acts-of-pizza", 0.7, data="synthetic"),
        run(tmp_path / "d", "spooky-author-identification", None),
        run(tmp_path / "e", "credit-default", 0.8, data="offline"),
    ]
    assert main([*map(str, runs), "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    rows = {line.split()[0]: line for line in printed.splitlines() if line.strip()}
    # Mean of 0.2 and 0.4, and their standard error: 0.1414 / sqrt(2).
    assert rows["leaf-classification"].rstrip().endswith("0.300±0.100")
    assert rows["random-acts-of-pizza"].rstrip().endswith("0.700 *")
    assert rows["spooky-author-identification"].rstrip().endswith("none valid")
    assert rows["lmsys-chatbot-arena"].rstrip().endswith("-")
    assert "0.800 *" in rows["credit-default"]
    assert "in no mean (random-acts-of-pizza)" in printed
    document = json.loads(out.read_text())["results"]
    own = {row["over"]: row for row in document["improvement"] if row["of"] == OWN}
    assert own[RL]["by_task"] == pytest.approx({"leaf-classification": (0.124 - 0.3) / 0.124})
    assert own[RL]["missing"] == {"spooky-author-identification": "no score"}
    assert own["Qwen2.5-3B AIDE"]["mean"] == pytest.approx((0.884 - 0.3) / 0.884)


def test_unknown_cells_never_count(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert main(["--missing", "zero", "--json", str(out)]) == 0
    rows = {row["over"]: row for row in json.loads(out.read_text())["results"]["improvement"]}
    # Seven known rows and one that Claude failed; the other four are nowhere quoted.
    assert rows["Claude-3.5-S AIDE"]["mean"] == pytest.approx(2.556 / 8, abs=1e-3)
    assert (rows["Claude-3.5-S AIDE"]["tasks"], len(rows["Claude-3.5-S AIDE"]["unknown"])) == (8, 4)
    with pytest.raises(SystemExit, match=r"over Claude-3.5-S AIDE: detecting-insults.* has no baseline"):
        main(["--missing", "raise"])


def test_a_real_summary_is_read(bandit_config: TrainConfig, tmp_path: Path) -> None:
    schedule = dataclasses.replace(bandit_config.schedule, updates=2, evaluate=4)
    assert run_training(dataclasses.replace(bandit_config, schedule=schedule)) == 0
    (result,) = read_runs([Path(bandit_config.run)]).values()
    assert (result.data, result.comparable) == ("", False)
    assert math.isnan(result.scores[0])  # it has no private rows


@pytest.mark.parametrize("text", ["{", "[]", '{"tasks": 3}'])
def test_what_is_no_summary_is_one_sentence(tmp_path: Path, text: str) -> None:
    with pytest.raises(SystemExit, match=r"has no summary\.json; a run writes it when it has ended"):
        main([str(tmp_path)])
    (tmp_path / "summary.json").write_text(text)
    with pytest.raises(SystemExit, match="is not the summary of a run"):
        main([str(tmp_path)])
