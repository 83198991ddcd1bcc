"""A machine that keeps failing and a stage that is stuck end the run, with a sentence, a code and a checkpoint."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_gym import cli
from trainers.common.checkpoint import Checkpoints
from trainers.common.config import ConfigError, TrainConfig, load_config
from trainers.common.failure_budget import FailureBudget, InfrastructureFailed
from trainers.common.stages import Stages, Stalled

gym.register("BrokenBandit-v0", entry_point="tests.trainers.bandit:Bandit", kwargs={"fail": True}, order_enforce=False)


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 8), st.integers(1, 12), st.floats(0, 1))
def test_the_budget_counts_as_a_loop_would(fates: list[bool], row: int, window: int, share: float) -> None:
    budget, expected = FailureBudget(row, window, share), False
    for number, masked in enumerate(fates, 1):
        budget.add(masked=masked, message="no power")
        last = fates[max(0, number - window) : number]
        expected |= number >= row and all(fates[number - row : number])
        expected |= len(last) == window and sum(last) / window > share
        if expected:
            with pytest.raises(InfrastructureFailed):
                budget.check()
        else:
            budget.check()


def test_the_budget_says_what_spent_it() -> None:
    budget = FailureBudget(in_a_row=3, window=10, share=0.4)
    for masked in [True, True, False, True, True, False, False, True, False, False]:
        budget.check()
        budget.add(masked=masked, message="the disk is gone." if masked else "")
    with pytest.raises(
        InfrastructureFailed, match=r"^5 of the last 10 executions failed for reasons that are not the "
    ):
        budget.check()
    budget = FailureBudget(in_a_row=3, window=10, share=1.0)
    for _ in range(3):
        budget.add(masked=True, message="the disk is gone.")
    with pytest.raises(InfrastructureFailed, match=r"^3 executions in a row .* the last one says: the disk is gone\.$"):
        budget.check()


def test_a_machine_that_fails_often_stops_the_run(
    bandit_config: TrainConfig, capfd: pytest.CaptureFixture[str]
) -> None:
    config = dataclasses.replace(
        bandit_config,
        env=dataclasses.replace(
            bandit_config.env, ids=("tests.trainers.bandit:Bandit-v0", "tests.trainers.test_watch:BrokenBandit-v0")
        ),
        execution=dataclasses.replace(
            bandit_config.execution, retries=1, retry_pause=0.01, failure_window=24, failure_share=0.4
        ),
        schedule=dataclasses.replace(bandit_config.schedule, max_failures=1000, updates=4, evaluate=0),
    )
    run = Path(config.run)
    file = run.parent / "config.toml"
    file.write_text(config.to_toml())
    assert cli.main(["train", "--config", str(file)]) == 75
    (sentence,) = capfd.readouterr().err.strip().splitlines()
    assert " of the last 24 executions failed for reasons that are not the program's; the last one says: " in sentence
    assert sentence.endswith(f"Continue with --resume {run}.")
    assert Checkpoints(run / "checkpoints").latest() is not None
    # Whoever has mended the machine goes on from there.
    (run / "config.toml").write_text(dataclasses.replace(
        config, execution=dataclasses.replace(config.execution, failure_share=1.0)
    ).to_toml())  # fmt: skip
    assert cli.main(["train", "--resume", str(run)]) == 0
    summary = json.loads((run / "summary.json").read_text())
    assert summary["updates"] == 4
    samples = [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]
    assert len({sample["ticket"] for sample in samples}) == len(samples)
    assert all(sample["reward_valid"] == ("Broken" not in sample["task"]) for sample in samples)
    assert sum(sample["reward_valid"] for sample in samples) == 64


def test_a_stuck_executor_ends_the_run_with_a_checkpoint(
    bandit_config: TrainConfig, capfd: pytest.CaptureFixture[str]
) -> None:
    config = dataclasses.replace(
        bandit_config,
        env=dataclasses.replace(bandit_config.env, kwargs={"hang": 3.0}),
        schedule=dataclasses.replace(bandit_config.schedule, stall_seconds=1.5, stall_warning=0.4),
    )
    file = Path(config.run).parent / "config.toml"
    file.write_text(config.to_toml())
    assert cli.main(["train", "--config", str(file)]) == Stages.EXIT_CODE
    said = capfd.readouterr().err.strip().splitlines()
    # On a busy machine another stage may be warned of as well.
    warning, end = (line for line in said if "s in execution: " in line)
    waits = (
        "32 executions are in flight and none ends; the oldest, ticket 0 of tests.trainers.bandit:Bandit-v0, was sent"
    )
    assert f"s in execution: {waits}" in warning
    assert warning.endswith("; the run ends when it is 2 s.")
    assert f"s in execution: {waits}" in end
    assert Checkpoints(Path(config.run) / "checkpoints").latest() is not None


def test_the_watchdog_warns_once_for_each_stall(tmp_path: Path) -> None:
    said: list[str] = []
    stages = Stages(60.0, tmp_path, warning=0.1, patience={"wait": 30.0}, warn=said.append)
    stages.watch()
    with stages("generate", "8 programs of policy version 3"):
        time.sleep(0.4)
        assert len(said) == 1
        stages.beat()
        time.sleep(0.4)
    with stages("wait"):
        stages.check("two programs run")
        time.sleep(0.4)
    time.sleep(0.3)
    stages.close()
    assert [text.partition(" s in ")[2] for text in said] == [
        "generation: 8 programs of policy version 3; the run ends when it is 60 s."
    ] * 2


def test_a_stage_may_have_patience(tmp_path: Path) -> None:
    stages = Stages(0.1, tmp_path, patience={"wait": 10.0})
    with stages("wait"):
        time.sleep(0.2)
        stages.check("a program may take ten seconds")
    with stages("learn"):
        time.sleep(0.2)
        with pytest.raises(Stalled, match=r"in learning: a batch\."):
            stages.check("a batch")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("execution.retries=-1", "execution.retries must not be negative"),
        ("execution.retry_pause=inf", "execution.retry_pause must be a number of seconds"),
        ("execution.failure_window=0", "execution.failure_window must be above 0"),
        ("execution.failure_share=1.1", r"execution.failure_share must be in \[0, 1\]"),
        ("execution.cahce=true", "did you mean 'cache'"),
        ("schedule.stall_warning=700", "is later than the end that it warns of"),
        ("schedule.stall_warning=0", "schedule.stall_warning must be above 0"),
    ],
)
def test_impossible_values_are_named(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(None, [override])


def test_a_cache_needs_an_environment_that_tells(bandit_config: TrainConfig, capfd: pytest.CaptureFixture[str]) -> None:
    execution = dataclasses.replace(bandit_config.execution, cache=True)
    file = Path(bandit_config.run).parent / "config.toml"
    file.write_text(dataclasses.replace(bandit_config, execution=execution).to_toml())
    assert cli.main(["train", "--config", str(file)]) == 2
    assert "has no execution_key that tells; set execution.cache to false." in capfd.readouterr().err
