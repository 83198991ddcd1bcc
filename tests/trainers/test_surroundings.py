"""Cores, stages and progress around the loop."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from mle_gym.sandbox.cores import CoreLease, available_cores
from trainers.common.own_core import OwnCore
from trainers.common.progress import LineProgress, LiveProgress, make_progress
from trainers.common.stages import Stages, Stalled

METRICS = {
    "update": 3,
    "reward_mean": -0.123456,
    "valid_share": 0.25,
    "best_public_score": None,
    "busy_executors": 0.5,
    "seconds": 12.34,
}
needs_cores = pytest.mark.skipif(len(available_cores()) < 2, reason="needs two cores")


@pytest.fixture(autouse=True)
def run_anywhere() -> Iterator[None]:
    """No test may leave the test process pinned."""
    before = os.sched_getaffinity(0)
    yield
    assert os.sched_getaffinity(0) == before


@needs_cores
def test_with_a_core_to_spare_the_learner_keeps_one() -> None:
    everywhere = available_cores()
    core = OwnCore(slots=1)
    try:
        mine = os.sched_getaffinity(0)
        if len(mine) < len(everywhere):  # unless another process of this machine holds them all
            with core():
                assert os.sched_getaffinity(0) == mine
    finally:
        core.close()
    core.close()


@needs_cores
def test_a_learner_that_gets_no_core_shares_one() -> None:
    everywhere = set(available_cores())
    core = OwnCore(slots=len(everywhere), patience=0.05)
    done = threading.Event()
    holding = threading.Event()

    def hold() -> None:
        with CoreLease.reserve(len(everywhere), leave=0):
            holding.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait(30)
    start = time.monotonic()
    with core():
        waited = time.monotonic() - start
        assert os.sched_getaffinity(0) == everywhere
    done.set()
    thread.join()
    assert 0.04 <= waited < 10


@needs_cores
def test_without_a_core_to_spare_the_learner_borrows() -> None:
    everywhere = set(available_cores())
    core = OwnCore(slots=len(everywhere))
    assert os.sched_getaffinity(0) == everywhere
    with core():
        if os.sched_getaffinity(0) == everywhere:
            pytest.skip("other processes of this machine hold every core")
        (mine,) = os.sched_getaffinity(0)
        others: list[tuple[int, ...]] = []

        def take() -> None:  # a thread of its own, because affinity is a thread's
            with CoreLease.reserve(len(everywhere), leave=0) as lease:
                others.append(lease.cores)

        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
        assert mine not in others[0]
    assert os.sched_getaffinity(0) == everywhere
    core.close()


def test_stages_add_up_and_name_the_one_that_is_stuck(tmp_path: Path) -> None:
    stages = Stages(0.2, tmp_path)
    for _ in range(2):
        with stages("learn"):
            time.sleep(0.02)
    assert 0.04 <= stages.seconds["learn"] < 0.5
    with stages("wait"):
        stages.check("nothing")
        time.sleep(0.25)
        stages.beat()
        stages.check("nothing")
        time.sleep(0.25)
        with pytest.raises(Stalled, match=r"No progress for 0 s in execution: two programs run\."):
            stages.check("two programs run")


def test_a_log_gets_plain_lines() -> None:
    text = io.StringIO()
    with LineProgress(Console(file=text, width=300)) as progress:
        progress.status("executing")
        progress.update(METRICS)
        progress.say("[done] 100 %")
    lines = text.getvalue().splitlines()
    assert lines[0].startswith("update 3  reward -0.123  valid 25%  best -")
    assert "executors 50%" in lines[0]
    assert lines[1:] == ["[done] 100 %"]
    assert "\x1b" not in text.getvalue()


def test_a_terminal_gets_a_table() -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=140)
    with LiveProgress(console, "task (seed 1)") as progress:
        for update in range(20):
            progress.update({**METRICS, "update": update})
        progress.status("executing: 3 of 8 finished")
        progress.say("Done.")
    last = text.getvalue().rpartition("task (seed 1)")[2]
    assert "reward" in last
    assert "19" in last
    assert "executing: 3 of 8 finished" in last
    assert "Done." in text.getvalue()


def test_pytest_is_no_terminal() -> None:
    assert isinstance(make_progress("x"), LineProgress)
