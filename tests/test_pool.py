from __future__ import annotations

import math
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import pytest
from gymnasium import spaces

from mle_gym.pool import EnvPool, StepResult
from mle_gym.sandbox import SandboxUnavailable
from mle_gym.wrappers import WallClockLimit
from tests.envs.processes import descendants, is_python
from tests.envs.programs import COPY, answer, sleeper
from tests.envs.schema import check_info

ID = "mle_gym/credit-default-v0"
REAL = partial(gym.make, ID, cores=0)


class Scripted(gym.Env[str, Any]):
    """An environment whose action is a function that it calls; knows nothing of cancellation."""

    observation_space = spaces.Text(20)
    action_space = spaces.Discrete(2)
    made: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        Scripted.made["made"] += 1
        self.number = Scripted.made["made"]
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        if options == {"fail": True}:
            raise OSError("no reset today")
        return f"first of {self.number}", {}

    def step(self, action: Callable[[], Any]) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return f"{action()} by {self.number}", 1.0, True, False, {"steps": self.steps}

    def close(self) -> None:
        Scripted.made["closed"] += 1


@pytest.fixture(autouse=True)
def _fresh_counts() -> None:
    Scripted.made.clear()


@pytest.fixture
def pool_of() -> Iterator[Callable[..., EnvPool]]:
    pools: list[EnvPool] = []

    def build(*args: Any, **kwargs: Any) -> EnvPool:
        pools.append(EnvPool(*args, **kwargs))
        return pools[-1]

    yield build
    for pool in pools:
        pool.close()


Build = Callable[..., EnvPool]


def _gather(pool: EnvPool, count: int, seconds: float = 60.0) -> list[StepResult]:
    results: list[StepResult] = []
    while len(results) < count:
        got = pool.recv(timeout=seconds)
        assert got, f"only {len(results)} of {count} results came"
        results += got
    return results


def test_first_ready_is_first_answered(pool_of: Build) -> None:
    pool = pool_of([REAL] * 3)
    pool.reset(seed=0)
    pool.send(0, answer(COPY))  # The first step of a process imports the metric and starts the sandbox.
    _gather(pool, 1)
    starts = pool.reset(seed=0)
    assert [start.env_index for start in starts] == [0, 1, 2]
    assert all(start.ticket == -1 and start.obs == start.next_obs for start in starts)
    tickets = [pool.send(i, sleeper(seconds)) for i, seconds in enumerate((3.0, 0.0, 1.5))]
    results = _gather(pool, 3)
    assert [result.env_index for result in results] == [1, 2, 0]
    assert {result.ticket: result.env_index for result in results} == dict(zip(tickets, range(3), strict=True))
    for result in results:
        check_info(result.info)
        assert (result.reward, result.terminated, result.truncated) == (0.5, True, False)
        assert result.next_obs == starts[result.env_index].obs
        assert result.obs != result.next_obs
        assert result.queued <= result.started <= result.ended
        assert result.info["duration"] <= result.ended - result.started


def test_more_than_slots_queue(pool_of: Build) -> None:
    pool = pool_of([REAL] * 5, slots=2)
    pool.reset(seed=0)
    for index in range(5):
        pool.send(index, sleeper(0.3))
    results = _gather(pool, 5)
    assert sorted(result.env_index for result in results) == list(range(5))
    spans = sorted((result.started, result.ended) for result in results)
    for moment, _ in spans:
        assert sum(start <= moment < end for start, end in spans) <= 2
    assert max(result.started - result.queued for result in results) > 0.3


def test_misuse_is_named(pool_of: Build) -> None:
    pool = pool_of([REAL] * 2)
    with pytest.raises(RuntimeError, match="Environment 0 was never reset"):
        pool.send(0, "words")
    pool.reset()
    with pytest.raises(ValueError, match="only 0 tickets are open"):
        pool.recv()
    assert pool.recv(min_ready=0) == []
    pool.send(0, sleeper(1.0))
    with pytest.raises(RuntimeError, match="Environment 0 is busy"):
        pool.send(0, "words")
    with pytest.raises(RuntimeError, match="Environment 0 is busy"):
        pool.reset()
    with pytest.raises(ValueError, match="min_ready=2, but only 1 tickets are open"):
        pool.recv(min_ready=2)
    for wrong in (math.nan, -1, "1", None):
        with pytest.raises(ValueError, match="whole number"):
            pool.recv(min_ready=wrong)  # type: ignore[arg-type]
    for wrong in (math.nan, -1.0, "1"):
        with pytest.raises(ValueError, match="number of seconds"):
            pool.recv(timeout=wrong)  # type: ignore[arg-type]
    assert pool.recv(min_ready=0, timeout=1e12) == []
    with pytest.raises(IndexError, match="no environment 2; the pool has 2"):
        pool.send(2, "words")
    with pytest.raises(TypeError, match=r"Utf8\(262144, sampler='program'\) takes str"):
        pool.send(1, 3)
    with pytest.raises(ValueError, match="no ticket 99"):
        pool.cancel(99)
    assert pool.recv(timeout=0.05) == []
    # Ready but not received is busy still.
    assert _gather(pool, 1)[0].info["outcome"] == "scored"
    pool.send(0, "words")
    pool.close()
    for call in (pool.recv, pool.reset, partial(pool.send, 0, "x")):
        with pytest.raises(RuntimeError, match="The pool is closed"):
            call()


@pytest.mark.parametrize("specs", [[], ID, REAL])
def test_specs_are_a_list(specs: Any) -> None:
    with pytest.raises(ValueError, match="needs a list"):
        EnvPool(specs)


def test_bad_slots_and_bad_ids() -> None:
    with pytest.raises(ValueError, match="slots=0"):
        EnvPool([REAL], slots=0)
    with pytest.raises(gym.error.NameNotFound):
        EnvPool([Scripted, "mle_gym/no-such-task-v0"])
    assert Scripted.made == {"made": 1, "closed": 1}


def test_all_kinds_of_specs_and_wrappers(pool_of: Build) -> None:
    pool = pool_of([ID, gym.spec(ID), REAL], wrappers=[partial(WallClockLimit, seconds=100.0)])
    assert pool.num_envs == 3
    assert all(isinstance(env, WallClockLimit) for env in pool.envs)
    pool.reset()
    for index in range(3):
        pool.send(index, "words")
    assert {result.info["outcome"] for result in pool.recv(min_ready=3)} == {"no_program"}


def test_without_autoreset(pool_of: Build) -> None:
    pool = pool_of([REAL], autoreset=False)
    pool.reset()
    pool.send(0, "words")
    (result,) = pool.recv()
    assert result.terminated
    assert result.next_obs == result.obs
    assert result.next_info == {}
    (start,) = pool.reset([0], seed=4)
    assert start.obs != result.obs


def test_seeds_are_counted_up(pool_of: Build) -> None:
    pool = pool_of([REAL] * 2)
    pool.reset(seed=10)
    for index in range(2):
        pool.send(index, answer("import os\nprint(os.environ['MLE_SEED'])"))
    results = sorted(_gather(pool, 2), key=lambda result: result.env_index)
    assert [result.info["terminal_output"] for result in results] == ["10", "11"]


def test_reset_options_reach_the_environment(pool_of: Build) -> None:
    pool = pool_of([REAL])
    (start,) = pool.reset(options={"previous": {"program": "x = 4321"}})
    assert "x = 4321" in start.next_obs


# --- failures ---------------------------------------------------------------------------------------------------------


def _raise(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit(3), KeyboardInterrupt(), MemoryError("none left")])
def test_a_step_that_raises_is_masked_and_its_environment_replaced(pool_of: Build, error: BaseException) -> None:
    pool = pool_of([Scripted] * 2, slots=1)
    pool.reset()
    ticket = pool.send(0, partial(_raise, error))
    (result,) = _gather(pool, 1)
    assert result.ticket == ticket
    check_info(result.info)
    assert (result.info["outcome"], result.reward, result.truncated) == ("infrastructure_error", 0.0, True)
    assert result.obs == "first of 1"
    assert result.next_obs == "first of 3"
    pool.send(0, lambda: "well")
    pool.send(1, lambda: "well")
    assert {r.obs for r in _gather(pool, 2)} == {"well by 3", "well by 2"}
    pool.close()
    assert Scripted.made == {"made": 3, "closed": 3}


def test_a_killed_sandbox_is_masked_and_the_next_step_works(pool_of: Build) -> None:
    pool = pool_of([REAL])
    pool.reset(seed=0)
    pool.send(0, answer(COPY))  # A sandbox that dies before its program has started is started again unseen.
    _gather(pool, 1)
    before = descendants()
    pool.send(0, sleeper(30))
    deadline = time.monotonic() + 20
    while not (new := descendants() - before) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    assert new
    for pid in descendants():
        if is_python(pid):
            os.kill(pid, signal.SIGKILL)
    (result,) = _gather(pool, 1)
    check_info(result.info)
    assert result.info["outcome"] in ("infrastructure_error", "runtime_error")
    pool.send(0, answer(COPY))
    assert _gather(pool, 1)[0].info["outcome"] == "scored"


def test_cancel_of_a_running_program(pool_of: Build) -> None:
    pool = pool_of([REAL] * 2)
    pool.reset(seed=0)
    ticket = pool.send(0, sleeper(60))
    other = pool.send(1, sleeper(0.5))
    time.sleep(0.4)
    start = time.monotonic()
    assert pool.cancel(ticket)
    results = {result.ticket: result for result in _gather(pool, 2)}
    assert time.monotonic() - start < 20
    check_info(results[ticket].info)
    assert (results[ticket].info["outcome"], results[ticket].truncated) == ("cancelled", True)
    assert results[other].info["outcome"] == "scored"
    assert not pool.cancel(ticket)
    pool.send(0, answer(COPY))
    assert _gather(pool, 1)[0].info["outcome"] == "scored"


def test_cancel_of_a_queued_step(pool_of: Build) -> None:
    pool = pool_of([REAL] * 2, slots=1)
    pool.reset(seed=0)
    pool.send(0, sleeper(1.0))
    ticket = pool.send(1, answer(COPY))
    assert pool.cancel(ticket)
    (result,) = pool.recv()
    assert (result.ticket, result.info["outcome"]) == (ticket, "cancelled")
    assert (result.terminated, result.truncated, result.info["data"]) == (False, False, "offline")
    check_info(result.info)
    assert result.started != result.started  # Never.
    assert _gather(pool, 1)[0].info["outcome"] == "scored"


def test_a_late_result_never_answers_a_newer_ticket(pool_of: Build) -> None:
    pool = pool_of([Scripted], slots=1, patience=5.0)
    pool.reset()
    entered, release = threading.Event(), threading.Event()

    def hang() -> str:
        entered.set()
        release.wait(30)
        return "late"

    first = pool.send(0, hang)
    assert entered.wait(10)
    assert pool.cancel(first)
    (result,) = _gather(pool, 1)
    assert (result.ticket, result.info["outcome"], result.next_obs) == (first, "cancelled", "first of 2")
    second = pool.send(0, lambda: "new")
    release.set()
    (result,) = _gather(pool, 1)
    assert (result.ticket, result.obs) == (second, "new by 2")
    assert pool.recv(min_ready=0) == []
    deadline = time.monotonic() + 10
    while Scripted.made["closed"] < 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert Scripted.made["closed"] == 1  # The worker that was given up closed the environment it held.


def test_close_ends_running_programs(pool_of: Build) -> None:
    pool = pool_of([REAL] * 3, slots=2)
    pool.reset(seed=0)
    marker = f"{random.random()}"
    for index in range(3):
        pool.send(index, answer(f"import time  # {marker}\ntime.sleep(300)"))
    time.sleep(1.0)
    start = time.monotonic()
    pool.close()
    pool.close()
    assert time.monotonic() - start < 20
    assert not [thread for thread in pool._workers if thread.is_alive()]


def test_close_leaves_a_hanging_environment_behind(pool_of: Build, caplog: pytest.LogCaptureFixture) -> None:
    pool = pool_of([Scripted] * 2, patience=0.3)
    pool.reset()
    release = threading.Event()
    pool.send(0, lambda: release.wait(30))
    time.sleep(0.1)
    start = time.monotonic()
    pool.close()
    assert time.monotonic() - start < 5
    assert "Left behind at close" in caplog.text
    assert Scripted.made["closed"] == 1
    release.set()


def test_an_environment_that_cannot_be_built_again_reaches_the_caller(pool_of: Build) -> None:
    class Once(Scripted):
        broken = False

        def __init__(self) -> None:
            if Once.broken:
                raise OSError("the disk is full")
            super().__init__()

    pool = pool_of([Once])
    pool.reset()
    Once.broken = True
    ticket = pool.send(0, partial(_raise, ValueError("broken")))
    with pytest.raises(OSError, match="the disk is full"):
        _gather(pool, 1)
    (result,) = _gather(pool, 1)
    assert (result.ticket, result.info["outcome"]) == (ticket, "infrastructure_error")
    Once.broken = False
    pool.send(0, lambda: "again")
    assert _gather(pool, 1)[0].obs.startswith("again by")


def test_what_every_step_would_meet_reaches_the_caller(pool_of: Build) -> None:
    pool = pool_of([Scripted])
    pool.reset()
    pool.send(0, partial(_raise, SandboxUnavailable("no namespaces here")))
    with pytest.raises(SandboxUnavailable, match="no namespaces here"):
        pool.recv()
    assert _gather(pool, 1)[0].info["outcome"] == "infrastructure_error"


def test_every_ticket_is_answered_exactly_once(pool_of: Build) -> None:
    rng = random.Random(0)
    pool = pool_of([Scripted] * 7, slots=3, patience=2.0)
    pool.reset()
    free, sent, answered = set(range(7)), [], Counter[int]()

    def work(seconds: float, fail: bool) -> str:
        time.sleep(seconds)
        if fail:
            raise ValueError("now and then")
        return "done"

    for _ in range(400):
        if free and rng.random() < 0.6:
            index = free.pop()
            sent.append(pool.send(index, partial(work, rng.random() * 0.004, rng.random() < 0.1)))
        elif sent and rng.random() < 0.3:
            pool.cancel(rng.choice(sent))
        else:
            for result in pool.recv(min_ready=0):
                answered[result.ticket] += 1
                free.add(result.env_index)
    while len(free) < 7:
        for result in _gather(pool, 1):
            answered[result.ticket] += 1
            free.add(result.env_index)
    assert sent == list(range(len(sent)))
    assert answered == Counter(sent)
    assert len([thread for thread in pool._workers if thread.is_alive()]) == 3


def test_many_threads_may_use_one_pool(pool_of: Build) -> None:
    pool = pool_of([Scripted] * 8, slots=4)
    pool.reset()
    done: list[StepResult] = []

    def client(index: int) -> None:
        for _ in range(20):
            pool.send(index, lambda: time.sleep(0.001))
            while pool._busy[index]:
                done.extend(pool.recv(min_ready=0))
                time.sleep(0.0005)

    threads = [threading.Thread(target=client, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert Counter(result.env_index for result in done) == dict.fromkeys(range(8), 20)
    assert len({result.ticket for result in done}) == 160


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be pinned here")
def test_a_replaced_worker_is_not_pinned_with_the_caller(pool_of: Build) -> None:
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("needs two cores")
    pool = pool_of([Scripted], slots=1, patience=0.2)
    pool.reset()
    blocked = threading.Event()
    ticket = pool.send(0, blocked.wait)
    while pool._jobs[0] is None or pool._jobs[0].worker is None:
        time.sleep(0.01)
    os.sched_setaffinity(0, {min(before)})  # as a learner does with its own core
    try:
        assert pool.cancel(ticket)
        assert [result.info["outcome"] for result in pool.recv(timeout=10.0)] == ["cancelled"]
        pool.send(0, lambda: sorted(os.sched_getaffinity(0)))
        (result,) = pool.recv(timeout=10.0)
        assert result.obs.startswith(str(sorted(before)))
    finally:
        os.sched_setaffinity(0, before)
        blocked.set()
