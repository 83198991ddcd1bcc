"""Executions outlive the process that waits for them, are not repeated without need, and are tried again with need."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import mle_gym
from mle_gym.execution_key import ExecutionKey
from mle_gym.pool import StepResult
from tests.trainers.bandit import Bandit
from tests.trainers.letters import PROGRAMS, Letters, answer
from trainers.common.action import Action
from trainers.common.durable import Durable
from trainers.common.execution_log import ExecutionLog
from trainers.common.recorder import Recorder


class Counting(Bandit):
    """A bandit that knows how often it was pulled, and whose machine fails the first ``broken`` times."""

    pulls: list[str]

    def __init__(self, broken: int = 0, *, cacheable: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pulls = []
        self.broken = broken
        self.cacheable = cacheable

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.pulls.append(action)
        self.fail = len(self.pulls) <= self.broken
        return super().step(action)

    def execution_key(self, action: str) -> ExecutionKey | None:
        return ExecutionKey("bandit", action[:1], "1", f"{self.scale}", 0, "none") if self.cacheable else None


class Setup:
    """A log, and executors on it as successive processes would have them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pools: list[mle_gym.EnvPool] = []
        self.logs: list[ExecutionLog] = []

    def start(self, envs: list[gym.Env[Any, Any]], *, cache: bool = False, **options: Any) -> Durable:
        log = ExecutionLog(self.folder / "executions.sqlite")
        recorder = Recorder(log, self.folder / "submissions", lambda: time.monotonic() - self.zero, cache=cache)
        factories = [lambda env=env, n=n: recorder.wrap(env, "bandit", n) for n, env in enumerate(envs)]
        pool = mle_gym.EnvPool(factories, patience=1.0)
        self.pools.append(pool)
        self.logs.append(log)
        options = {"restarted": len(log) > 0, "pause": 0.01, **options}
        executor = Durable(pool, recorder, ["bandit"] * len(envs), **options)
        executor.reset(seed=0)
        return executor

    zero = time.monotonic()

    def stop(self) -> None:
        """What a kill does to the parent; the log has been written already."""
        for pool, log in zip(self.pools, self.logs, strict=True):
            pool.close()
            log.close()


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Setup]:
    made = Setup(tmp_path)
    yield made
    made.stop()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def receive(executor: Durable, count: int) -> list[StepResult]:
    results: list[StepResult] = []
    while len(results) < count:
        results += executor.recv(1, 30.0)
    return results


def test_what_ended_before_the_restart_comes_back_and_the_rest_runs(setup: Setup) -> None:
    executor = setup.start([Counting(scale=20.0), Counting(scale=1.0), Counting(hang=60.0)])
    for env, arm in enumerate("cca"):
        executor.send(env, Action(arm, ticket=10 + env, queued=1.0, generated=2.0))
    wait_for(lambda: len(setup.logs[0]) == 2)  # nobody has received anything
    setup.stop()

    again = [Counting(scale=20.0), Counting(scale=1.0), Counting(scale=2.0)]
    executor = setup.start(list(again))
    mine = {executor.send(env, Action(arm, ticket=10 + env)): 10 + env for env, arm in enumerate("cca")}
    results = receive(executor, 3)
    assert sorted(mine[result.ticket] for result in results) == [10, 11, 12]
    by_ticket = {mine[result.ticket]: result for result in results}
    assert [env.pulls for env in again] == [[], [], ["a"]]
    assert [by_ticket[ticket].info["duration"] for ticket in (10, 11, 12)] == [0.2, 0.01, 0.0]
    assert [by_ticket[ticket].reward for ticket in (10, 11, 12)] == [1.0, 1.0, 0.2]
    assert [by_ticket[ticket].info["execution"]["attached"] for ticket in (10, 11, 12)] == [True, True, False]
    origin = by_ticket[11].info["execution"]
    assert (origin["queued"], origin["generated"], origin["cached"]) == (1.0, 2.0, False)
    assert 0.2 - 1e-9 <= by_ticket[10].info["execution"]["ended"] - by_ticket[10].info["execution"]["started"] < 60
    assert len(setup.logs[1]) == 3
    assert by_ticket[10].next_obs == "pull"


def test_another_response_on_the_same_ticket_runs(setup: Setup) -> None:
    executor = setup.start([Counting()])
    executor.send(0, Action("a", ticket=3))
    wait_for(lambda: len(setup.logs[0]) == 1)
    setup.stop()
    env = Counting()
    executor = setup.start([env])
    executor.send(0, Action("c", ticket=3))
    (result,) = receive(executor, 1)
    assert (result.reward, env.pulls, result.info["execution"]["attached"]) == (1.0, ["c"], False)


@pytest.mark.parametrize(("broken", "outcome", "valid", "attempts"), [(2, "scored", True, 3), (3, "scored", False, 3)])
def test_a_failed_machine_is_tried_again_within_a_bound(
    setup: Setup, broken: int, outcome: str, valid: bool, attempts: int
) -> None:
    env = Counting(broken)
    executor = setup.start([env], retries=2, pause=0.05)
    start = time.monotonic()
    ticket = executor.send(0, Action("a", ticket=7))
    (result,) = receive(executor, 1)
    assert time.monotonic() - start >= 0.05 + 0.1
    assert (result.ticket, result.info["reward_valid"]) == (ticket, valid)
    assert result.info["outcome"] == (outcome if valid else "infrastructure_error")
    assert len(env.pulls) == attempts
    rows = list(setup.logs[0].read())
    assert [(row.ticket, row.attempt, row.valid) for row in rows] == [
        (7, 1, False),
        (7, 2, False),
        (7, 3, valid),
    ]
    executor.send(0, Action("a", ticket=8))  # the environment is free again
    assert receive(executor, 1)[0].info["reward_valid"]


def test_a_worker_that_dies_is_tried_again_and_on_record(setup: Setup) -> None:
    class Breaking(Counting):
        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            result = super().step(action)
            if len(self.pulls) == 1:
                raise OSError("the disk is gone")
            return result

    env = Breaking()
    executor = setup.start([env], retries=1)
    executor.send(0, Action("a", ticket=0))
    (result,) = receive(executor, 1)
    assert (result.info["outcome"], len(env.pulls)) == ("scored", 2)
    first, second = setup.logs[0].read()
    assert (first.attempt, first.outcome, first.duration, second.attempt, second.valid) == (
        1,
        "infrastructure_error",
        0.0,
        2,
        True,
    )
    assert "the disk is gone" in str(first.info["message"])


def test_a_cancelled_step_is_not_tried_again(setup: Setup) -> None:
    env = Counting(broken=9)
    executor = setup.start([env], retries=5, pause=30.0)
    ticket = executor.send(0, Action("a", ticket=0))
    assert list(executor.recv(1, 0.3)) == []
    assert env.pulls == ["a"]
    executor.cancel(ticket)
    (result,) = receive(executor, 1)
    assert (result.ticket, result.info["outcome"], result.info["reward_valid"]) == (ticket, "cancelled", False)
    with pytest.raises(ValueError, match="only 0 tickets are open"):
        executor.recv(1, 0.0)


def test_a_program_that_ran_is_answered_from_the_log(setup: Setup) -> None:
    env, other, broken = Counting(scale=10.0), Counting(scale=20.0), Counting(broken=1, scale=3.0)
    executor = setup.start([env, other, broken], cache=True)

    def pull(index: int, action: str, ticket: int) -> StepResult:
        executor.send(index, Action(action, ticket=ticket))
        return receive(executor, 1)[0]

    first = pull(0, "c first", 0)
    start = time.monotonic()
    second = pull(0, "c second", 1)
    assert time.monotonic() - start < 0.1
    assert env.pulls == ["c first"]
    assert (second.reward, second.info["duration"]) == (first.reward, first.info["duration"]) == (1.0, 0.1)
    assert (first.info["execution"]["cached"], second.info["execution"]["cached"]) == (False, True)
    assert first.info["execution"]["id"] == second.info["execution"]["id"] == 1
    pull(1, "c", 2)  # another limit
    assert other.pulls == ["c"]
    assert not pull(2, "c", 3).info["reward_valid"]  # the machine failed: nothing to remember
    assert pull(2, "c", 4).info["reward_valid"]
    assert broken.pulls == ["c", "c"]
    executor.send(0, "c")  # an evaluation measures anew
    assert receive(executor, 1)[0].info["execution"]["cached"] is False
    assert len(env.pulls) == 2
    assert len(setup.logs[0]) == 5


def test_without_a_key_nothing_is_cached(setup: Setup) -> None:
    env = Counting(cacheable=False)
    executor = setup.start([env], cache=True)
    for ticket in range(3):
        executor.send(0, Action("c", ticket=ticket))
        receive(executor, 1)
    assert len(env.pulls) == 3


def test_a_real_program_has_a_key_and_its_result_comes_back_whole(tmp_path: Path) -> None:
    with ExecutionLog(tmp_path / "log") as log:
        recorder = Recorder(log, tmp_path / "submissions", time.monotonic, cache=True)
        env = recorder.wrap(Letters("credit-default", program_seed=4, cores=0, max_steps=3), "letters", 0)
        env.reset(seed=1)
        first = env.step(Action("b one", ticket=0))
        kept = Path(recorder.submission(0))
        assert kept.read_bytes() == Path(first[4]["submission_path"]).read_bytes()
        env.reset(seed=2)
        second = env.step(Action("b two", ticket=1))
        assert first[1:4] == second[1:4]
        assert (first[4]["plan"], second[4]["plan"]) == ("Plan b one.", "Plan b two.")
        for name, value in first[4].items():
            if name not in ("plan", "execution"):
                np.testing.assert_equal(second[4][name], value, err_msg=name)
                assert type(second[4][name]) is type(value), name
        assert second[4]["execution"]["cached"]
        assert second[4]["duration"] >= 0.3
        env.step(Action("?", ticket=2))
        env.step(Action("a", ticket=3))
        with pytest.raises(gym.error.ResetNeeded):  # the step from the log was one of the three
            env.step(Action("a", ticket=4))
        recorder.received([0])
        assert recorder.submission(0) == ""
        tickets = [(found.ticket, found.key.data.partition(":")[0]) for found in log.read()]
        assert tickets == [(0, "offline"), (2, ""), (3, "offline")]
        env.close()


def test_a_timeout_under_one_limit_says_nothing_about_another(tmp_path: Path) -> None:
    with ExecutionLog(tmp_path / "log") as log:
        recorder = Recorder(log, tmp_path / "submissions", time.monotonic, cache=True)

        def run(ticket: int, **kwargs: Any) -> dict[str, Any]:
            env = recorder.wrap(Letters("credit-default", program_seed=4, cores=0, **kwargs), "letters", 0)
            env.reset(seed=0)
            info = env.step(Action("c", ticket=ticket))[4]
            env.close()
            return info

        infos = [run(0, time_limit=0.5), run(1, time_limit=0.5), run(2, time_limit=30.0), run(3, time_limit=30.0)]
        assert [info["outcome"] for info in infos] == ["timeout", "timeout", "scored", "scored"]
        assert [info["execution"]["cached"] for info in infos] == [False, True, False, True]
        assert infos[0]["duration"] == infos[1]["duration"] < 1.0 <= infos[2]["duration"] == infos[3]["duration"]


def test_keys_tell_apart_what_matters() -> None:
    def key(action: str = "a", seed: int = 0, **kwargs: Any) -> ExecutionKey | None:
        env = mle_gym.env.MLEEnv("credit-default", **kwargs)
        assert env.execution_key(answer(action)) is None  # no data yet
        env.reset(seed=seed)
        made = env.execution_key(answer(action))
        env.close()
        return made

    base = key()
    assert base is not None
    assert base == key()
    assert key("?") is None
    others = [
        key("b"),
        key(seed=1),
        key(time_limit=7.0),
        key(memory_mb=1000),
        key(reward="medal"),
        key(instrumenter="none"),
    ]
    assert len({base, *others}) == 1 + len(others)
    assert key(seed=1, program_seed=0) == base
    assert len(PROGRAMS) == 5
