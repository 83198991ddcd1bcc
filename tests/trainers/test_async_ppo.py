"""The whole loop on a bandit: it learns, resumes bit for bit, survives kills, and stops cleanly."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from trainers.async_ppo.run import RunFailed, run_training
from trainers.common.checkpoint import Checkpoints
from trainers.common.config import ConfigError, TrainConfig
from trainers.common.jsonlines import JsonLines
from trainers.common.rollout import Rollout
from trainers.common.run_folder import RunFolder
from trainers.common.sample import Sample
from trainers.common.stages import Stages

ROOT = Path(__file__).parents[2]
BANDIT = "tests.trainers.bandit:Bandit-v0"


def changed(config: TrainConfig, **sections: dict[str, Any] | Any) -> TrainConfig:
    new = {
        name: dataclasses.replace(getattr(config, name), **value) if isinstance(value, dict) else value
        for name, value in sections.items()
    }
    return dataclasses.replace(config, **new)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "policy" / "model.safetensors")


def assert_same_run(one: Path, other: Path, *, timed: bool = False) -> None:
    """Parameters, optimiser and everything logged but the clock are equal, bit for bit."""
    first, second = weights(one), weights(other)
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name
    newest = [Checkpoints(run / "checkpoints").latest() for run in (one, other)]
    states = [load_file(folder / "tensors.safetensors") for folder in newest if folder]
    assert states[0].keys() == states[1].keys()
    for name, tensor in states[0].items():
        assert torch.equal(tensor, states[1][name]), name
    clocked = ("seconds", "busy", "waiting", "core", "rate_", "limit_")
    rows = [
        [
            {k: v for k, v in row.items() if not any(word in k for word in clocked)}
            for row in lines(run / "metrics.jsonl")
        ]
        for run in (one, other)
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) > 3


def test_it_learns_and_leaves_a_complete_record(bandit_config: TrainConfig) -> None:
    config = changed(bandit_config, schedule={"updates": 30})
    assert run_training(config) == 0
    run = Path(config.run)
    summary = json.loads((run / "summary.json").read_text())
    # A uniform policy over ten letters earns -1.46 per pull; the best arm pays 1.
    assert summary["mean_reward_first"] < -0.8
    assert summary["mean_reward_last"] > 0.8
    assert summary["valid_share_last"] > summary["valid_share_first"] + 0.3
    assert (summary["updates"], summary["seed"], summary["task"], summary["samples"]) == (30, 1, BANDIT, 480)
    assert summary["best_public_score"] == 1.0
    before, after = (summary["evaluation"][name][BANDIT] for name in ("before", "after"))
    assert before["samples"] == after["samples"] == 8
    assert before["mean_reward"] < 0 < after["mean_reward"]
    metrics = lines(run / "metrics.jsonl")
    assert [row["update"] for row in metrics] == list(range(30))
    assert all(row["lag_mean"] <= 1.5 and row["dropped"] == 0 for row in metrics)
    assert sum(row["outcomes"].get("scored", 0) + row["outcomes"].get("no_program", 0) for row in metrics) == 480
    samples = lines(run / "samples.jsonl")
    assert sorted(row["ticket"] for row in samples) == list(range(480))
    assert all(row["queued"] <= row["generated"] <= row["started"] <= row["ended"] for row in samples)
    audit = json.loads((run / "audit.json").read_text())
    assert sum(sum(row.values()) for row in audit["versions"].values()) == 480
    assert audit["deciles"]["launched"] == audit["deciles"]["trained"]
    assert any((run / "tensorboard").iterdir())
    assert (run / "best" / "tests.trainers.bandit:Bandit-v0" / "program.py").read_text() == "c"


@pytest.mark.parametrize(
    "admission",
    [
        {"rule": "oldest_first", "lookahead": 2},
        {"rule": "race", "multiplier": 1.5, "leftovers": "keep"},
        {"rule": "race", "multiplier": 1.5, "leftovers": "cancel"},
        {"rule": "oldest_first", "lookahead": 0, "lookahead_max": 3},
        pytest.param({"rule": "in_order", "lookahead": 2}, marks=pytest.mark.slow),
        pytest.param(
            {"rule": "drop_stale", "multiplier": 3.0, "max_lag": 1, "leftovers": "keep"}, marks=pytest.mark.slow
        ),
        {"rule": "drop_stale", "multiplier": 3.0, "max_lag": 1, "leftovers": "cancel"},
    ],
)
def test_a_resumed_run_equals_an_uninterrupted_one(
    bandit_config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, admission: dict[str, Any]
) -> None:
    config = changed(
        bandit_config,
        admission=admission,
        # Inclusion reads the stamps of every completion; a repeated one has those of the record.
        weights={"rule": "duration" if admission["rule"] == "oldest_first" else "inclusion"},
        algorithm={"epochs": 2, "micro_batch": 6, "options": {"kl": 0.01, "baseline": "running_mean"}},
        schedule={"updates": 12, "evaluate": 0, "checkpoint_every": 5},
        env={"kwargs": {"scale": 3.0}},
    )
    assert run_training(config) == 0
    whole = Path(config.run)
    assert len({row["duration"] for row in lines(whole / "samples.jsonl")}) == 3
    fates = json.loads((whole / "audit.json").read_text())["versions"].values()
    # The race's losers, cancelled or not, are dropped by the rule; nothing here is the machine's fault.
    assert sum(fate["masked"] for fate in fates) == 0
    drops = admission["rule"] == "drop_stale" or admission.get("leftovers") == "cancel"
    assert (sum(fate["dropped"] for fate in fates) > 0) == drops
    if admission["rule"] == "race" and drops:
        assert any(row["weight_max"] > 1.0 for row in lines(whole / "metrics.jsonl"))
    elif admission["rule"] == "race":
        assert all(row["weight_max"] == 1.0 for row in lines(whole / "metrics.jsonl"))

    # The same completions, interrupted by a signal in the middle of three batches.
    parts = tmp_path / "parts"
    shutil.copytree(whole, parts, ignore=shutil.ignore_patterns("checkpoints", "policy", "metrics.jsonl", "*.json"))
    (parts / "config.toml").write_text(dataclasses.replace(config, run=str(parts)).to_toml())
    groups = 1 + max(row["recv"] for row in lines(whole / "samples.jsonl"))
    stops = {groups // 5, groups // 2, groups * 3 // 4}
    receive = Rollout.receive

    def receive_and_stop(rollout: Rollout, timeout: float) -> list[Sample]:
        samples = receive(rollout, timeout)
        if rollout.received in stops:
            stops.remove(rollout.received)
            os.kill(os.getpid(), signal.SIGTERM)
        return samples

    monkeypatch.setattr(Rollout, "receive", receive_and_stop)
    codes = [run_training(config, parts) for _ in range(4)]
    assert codes == [128 + signal.SIGTERM] * 3 + [0]
    assert_same_run(whole, parts)
    assert lines(whole / "samples.jsonl") == lines(parts / "samples.jsonl")


def command(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mle_gym", "train", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_updates(run: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 300
    while not (run / "metrics.jsonl").is_file() or len((run / "metrics.jsonl").read_bytes().splitlines()) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_a_killed_run_loses_no_finished_execution(bandit_config: TrainConfig, tmp_path: Path) -> None:
    config = changed(
        bandit_config, schedule={"updates": 40, "checkpoint_every": 4, "evaluate": 4}, env={"kwargs": {"scale": 5.0}}
    )
    file, run = tmp_path / "config.toml", Path(config.run)
    file.write_text(config.to_toml())
    process = command("--config", str(file))
    wait_for_updates(run, 7, process)
    process.kill()
    process.communicate()
    before, recorded = lines(run / "metrics.jsonl"), len(JsonLines(run / "samples.jsonl").read())
    with (run / "samples.jsonl").open("ab") as samples:
        samples.write(b'{"ticket": 9')  # what a kill in the middle of a write leaves
    again = command("--resume", str(run))
    _, errors = again.communicate(timeout=300)
    assert again.returncode == 0, errors
    after = lines(run / "metrics.jsonl")
    assert [row["update"] for row in after] == list(range(40))
    for old, new in zip(before, after, strict=False):
        for key in ("reward_mean", "loss", "grad_norm", "max_ratio", "duration_mean"):
            assert old[key] == new[key], key
    tickets = [row["ticket"] for row in lines(run / "samples.jsonl")]
    assert sorted(tickets) == list(range(640))
    assert recorded >= 7 * 16


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_go_on(bandit_config: TrainConfig, tmp_path: Path) -> None:
    config = changed(bandit_config, schedule={"updates": 500, "checkpoint_every": 1000}, env={"kwargs": {"scale": 5.0}})
    file, run = tmp_path / "config.toml", Path(config.run)
    file.write_text(config.to_toml())
    process = command("--config", str(file))
    wait_for_updates(run, 3, process)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    assert errors == ""
    assert f"Continue with --resume {run}" in output
    assert Checkpoints(run / "checkpoints").latest() is not None
    assert not (run / "summary.json").exists()


def test_a_record_of_another_machine_is_set_aside(bandit_config: TrainConfig) -> None:
    config = changed(bandit_config, schedule={"updates": 4, "evaluate": 0, "checkpoint_every": 100})
    assert run_training(config) == 0
    run = Path(config.run)
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints").mkdir()
    records = lines(run / "samples.jsonl")
    place = next(index for index, row in enumerate(records) if row["ticket"] == 33)
    records[place]["response"] = "another response"
    (run / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records))
    assert run_training(config, run) == 0
    lost = lines(run / "lost.jsonl")
    assert 33 in [row["ticket"] for row in lost]
    assert sorted(row["ticket"] for row in lines(run / "samples.jsonl")) == list(range(64))


def test_infrastructure_failures_stop_the_run(bandit_config: TrainConfig) -> None:
    config = changed(bandit_config, env={"kwargs": {"fail": True}}, schedule={"max_failures": 20})
    with pytest.raises(RunFailed, match=r"20 executions in a row .* The machine is on fire\. Continue with --resume "):
        run_training(config)
    assert lines(Path(config.run) / "metrics.jsonl") == []


def test_a_stuck_executor_is_named(bandit_config: TrainConfig) -> None:
    config = changed(bandit_config, env={"kwargs": {"hang": 3.0}}, schedule={"stall_seconds": 1.0})
    with pytest.raises(RunFailed, match=r"No progress for \d+ s in execution: 32 executions are in flight"):
        run_training(config)


def test_a_stuck_computation_ends_the_process(tmp_path: Path) -> None:
    code = (
        "import time, pathlib, sys\n"
        "from trainers.common.stages import Stages\n"
        "stages = Stages(0.1, pathlib.Path(sys.argv[1]))\n"
        "stages.watch()\n"
        "with stages('learn'):\n"
        "    time.sleep(60)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == Stages.EXIT_CODE
    assert "stuck" in result.stderr
    assert "in learning" in result.stderr
    assert "time.sleep" in (tmp_path / "stall.txt").read_text() or "<module>" in (tmp_path / "stall.txt").read_text()


def test_the_time_limit_ends_the_run(bandit_config: TrainConfig) -> None:
    config = changed(
        bandit_config, schedule={"updates": 10_000, "max_seconds": 0.5, "evaluate": 0}, env={"kwargs": {"scale": 2.0}}
    )
    assert run_training(config) == 0
    summary = json.loads((Path(config.run) / "summary.json").read_text())
    assert 0 < summary["updates"] < 10_000
    assert 0.5 <= summary["wall_seconds"] < 10


def test_a_run_has_one_writer(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", TrainConfig())
    with pytest.raises(ConfigError, match="Another process is writing"):
        RunFolder.open(tmp_path / "run")
    folder.close()
    again, config = RunFolder.open(tmp_path / "run")
    assert config == TrainConfig()
    again.close()
    RunFolder.create(tmp_path / "run", TrainConfig()).close()  # nothing was run yet
    (tmp_path / "run" / "samples.jsonl").write_text("{}\n")
    with pytest.raises(ConfigError, match=r"is not empty; choose another --run"):
        RunFolder.create(tmp_path / "run", TrainConfig())


def test_tasks_are_launched_in_turn_however_slow_they_are(bandit_config: TrainConfig) -> None:
    config = changed(
        bandit_config,
        env={"ids": (BANDIT, "tests.trainers.bandit:SlowBandit-v0")},
        schedule={"updates": 5, "evaluate": 0},
    )
    assert run_training(config) == 0
    rows = lines(Path(config.run) / "samples.jsonl")
    slow = [row for row in rows if "Slow" in row["task"]]
    assert len(rows) == 80
    assert len(slow) == 40
    assert "reward_by_task" in lines(Path(config.run) / "metrics.jsonl")[0]


def test_programs_start_before_the_next_responses_are_sampled(bandit_config: TrainConfig) -> None:
    config = changed(
        bandit_config, generation={"batch_size": 6}, schedule={"updates": 4, "evaluate": 0, "checkpoint_every": 3}
    )
    assert run_training(config) == 0
    run = Path(config.run)
    rows = sorted(lines(run / "samples.jsonl"), key=lambda row: row["ticket"])
    assert [row["ticket"] for row in rows] == list(range(64))
    # Two batches of 16 may start at first: six groups, of which the last has two. Each later update lets 16 start.
    groups = [len(list(group)) for _, group in itertools.groupby(rows, key=lambda row: row["generated"])]
    assert groups == [6, 6, 6, 6, 6, 2, 6, 6, 4, 6, 6, 4]
    assert rows[0]["generated"] < rows[6]["queued"]
    whole = weights(run)
    # Without a checkpoint the whole run is repeated from its record.
    (run / "summary.json").unlink()
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints").mkdir()
    assert run_training(config, run) == 0
    assert all(torch.equal(tensor, whole[name]) for name, tensor in weights(run).items())
    assert not (run / "lost.jsonl").exists()
