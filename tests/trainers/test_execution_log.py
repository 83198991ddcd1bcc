"""The log keeps every record through kills, and says in one sentence when it cannot be read."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mle_gym.execution_key import ExecutionKey
from mle_gym.info import empty_info
from trainers.common.config import TrainConfig
from trainers.common.execution_log import ExecutionLog, ExecutionLogUnusable, ExecutionRecord
from trainers.common.run_folder import RunFolder

ROOT = Path(__file__).parents[2]
KEY = ExecutionKey(task="task", program="p", data="offline:1", limits="{}", seed=3, instrumenter="probe")


def record(ticket: int | None = 0, **values: Any) -> ExecutionRecord:
    given: dict[str, Any] = {
        "action": "a",
        "key": KEY,
        "env": 0,
        "attempt": 1,
        "obs": "again",
        "reward": 0.5,
        "terminated": True,
        "truncated": False,
        "info": {"outcome": "scored", "reward_valid": True, "duration": 1.5},
        "queued": 0.0,
        "generated": 0.5,
        "started": 1.0,
        "ended": 2.5,
    }
    return ExecutionRecord(ticket=ticket, **{**given, **values})


def test_a_step_comes_back_with_its_types(tmp_path: Path) -> None:
    flags = np.array([True, False, True])
    info = {
        **empty_info(),
        "milestones": flags,
        "score": np.float32(0.25),
        "cpu_time": math.inf,
        "program": "ü\n\ud800",
    }
    with ExecutionLog(tmp_path / "log") as log:
        assert log.append(record(5, info=info, obs="ü\x00\udfff", reward=-1.25)) == 1
    with ExecutionLog(tmp_path / "log") as log:
        (found,) = log.read()
    assert (found.id, found.ticket, found.obs, found.reward) == (1, 5, "ü\x00\udfff", -1.25)
    assert (found.terminated, found.truncated) == (True, False)
    assert found.info.keys() == info.keys()
    assert found.info["milestones"].dtype == np.bool_
    assert found.info["milestones"].tolist() == flags.tolist()
    assert math.isnan(found.info["percentile"])
    assert (found.info["score"], found.info["cpu_time"], found.info["program"]) == (0.25, math.inf, "ü\n\ud800")


OUTCOMES = ("scored", "timeout", "runtime_error", "infrastructure_error", "cancelled")
events = st.one_of(
    st.just("reopen"),
    st.builds(
        lambda ticket, action, program, data, limits, seed, outcome, ended: record(
            ticket,
            action=action,
            key=ExecutionKey("task", program, data, limits, seed, "probe"),
            info={"outcome": outcome, "reward_valid": outcome not in OUTCOMES[3:], "duration": ended / 2},
            ended=ended,
        ),
        ticket=st.none() | st.integers(0, 3),
        action=st.sampled_from("ab"),
        program=st.sampled_from("pq"),
        data=st.sampled_from(["", "1", "2"]),
        limits=st.sampled_from(["10 s", "20 s"]),
        seed=st.sampled_from([0, 2**32 - 1]),
        outcome=st.sampled_from(OUTCOMES),
        ended=st.floats(0, 100),
    ),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(events, max_size=15))
def test_the_log_answers_as_a_list_would(tmp_path_factory: pytest.TempPathFactory, steps: list[Any]) -> None:
    path = tmp_path_factory.mktemp("log") / "executions.sqlite"
    log = ExecutionLog(path)
    model: list[ExecutionRecord] = []
    for step in steps:
        if step == "reopen":
            log.close()
            log = ExecutionLog(path, after=len(model))
        else:
            assert log.append(step) == len(model) + 1
            model.append(step)
    assert len(log) == len(model)
    assert [(r.ticket, r.action, r.info, r.ended) for r in log.read()] == [
        (r.ticket, r.action, r.info, r.ended) for r in model
    ]
    assert log.last_ended == max((r.ended for r in model), default=0.0)
    for ticket in range(4):
        for action in "ab":
            fitting = [n for n, r in enumerate(model, 1) if (r.ticket, r.action) == (ticket, action) and r.valid]
            found = log.finished(ticket, action)
            assert (found.id if found else None) == (fitting[-1] if fitting else None)
    for key in {r.key for r in model}:
        fitting = [n for n, r in enumerate(model, 1) if r.key == key and r.valid and key.data]
        found = log.cached(key)
        assert (found.id if found else None) == (fitting[0] if fitting else None)
        assert found is None or (found.key, found.outcome in OUTCOMES[3:]) == (key, False)
    log.close()


def test_nothing_is_changed_or_deleted(tmp_path: Path) -> None:
    with ExecutionLog(tmp_path / "log") as log:
        log.append(record())
    file = sqlite3.connect(tmp_path / "log")
    for statement in ("DELETE FROM executions", "UPDATE executions SET duration = 0"):
        with pytest.raises(sqlite3.IntegrityError, match="executions are never"):
            file.execute(statement)
    file.close()


def test_threads_take_turns_and_others_may_read(tmp_path: Path) -> None:
    with ExecutionLog(tmp_path / "log") as log:

        def work(ticket: int) -> None:
            for _ in range(20):
                log.append(record(ticket))

        threads = [threading.Thread(target=work, args=(ticket,)) for ticket in range(6)]
        for thread in threads:
            thread.start()
        reader = sqlite3.connect(f"file:{tmp_path / 'log'}?mode=ro", uri=True)
        counts = [reader.execute("SELECT COUNT(*) FROM executions").fetchone()[0] for _ in range(5)]
        for thread in threads:
            thread.join()
        assert counts == sorted(counts)
        assert reader.execute("SELECT ticket, COUNT(*) FROM executions GROUP BY ticket").fetchall() == [
            (ticket, 20) for ticket in range(6)
        ]
        reader.close()


WRITER = """
import sys
from pathlib import Path
from tests.trainers.test_execution_log import record
from trainers.common.execution_log import ExecutionLog
log = ExecutionLog(Path(sys.argv[1]))
for ticket in range(1_000_000):
    log.append(record(ticket, obs="x" * (ticket % 5000)))
    sys.stdout.write(f"{ticket}\\n")
    sys.stdout.flush()
"""


def test_a_killed_writer_loses_nothing_that_it_was_told_is_safe(tmp_path: Path) -> None:
    path = tmp_path / "executions.sqlite"
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said = [int(process.stdout.readline()) for _ in range(50)]
    time.sleep(0.037)
    process.send_signal(signal.SIGKILL)
    said += [int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    process.wait()
    process.stdout.close()
    with ExecutionLog(path, after=len(said)) as log:
        tickets = [found.ticket for found in log.read()]
    # One more may be there: written, but not yet said.
    assert tickets[: len(said)] == said
    assert len(tickets) - len(said) in (0, 1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "executions.sqlite"
    with ExecutionLog(path) as log:
        for ticket in range(60):
            log.append(record(ticket, obs="x" * 700))
    return path


@settings(max_examples=30, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_cut_log_says_one_sentence_and_the_way_out_works(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    path = tmp_path_factory.mktemp("cut") / "executions.sqlite"
    path.write_bytes(whole.read_bytes()[: int(share * whole.stat().st_size)])
    with pytest.raises(ExecutionLogUnusable) as caught:
        ExecutionLog(path, after=60)
    text = str(caught.value)
    assert str(path) in text
    assert "to another folder and resume again" in text
    assert "\n" not in text
    shutil.move(path, path.with_name("old"))
    with ExecutionLog(path, after=60) as log:
        assert len(log) == 0
        assert log.append(record()) == 61


@settings(max_examples=30, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), noise=st.binary(min_size=64, max_size=4096))
def test_noise_in_the_file_is_never_a_traceback(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, place: float, noise: bytes
) -> None:
    path = tmp_path_factory.mktemp("noise") / "executions.sqlite"
    content = bytearray(whole.read_bytes())
    start = int(place * len(content))
    content[start : start + len(noise)] = noise[: len(content) - start]
    path.write_bytes(content)
    with contextlib.suppress(ExecutionLogUnusable), ExecutionLog(path, after=60) as log:
        # What can be read is what was written.
        assert [(found.ticket, found.obs) for found in log.read()] == [(ticket, "x" * 700) for ticket in range(60)]


def test_a_log_of_another_version_or_of_something_else_is_refused(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "executions.sqlite"
    shutil.copy(whole, path)
    file = sqlite3.connect(path)
    file.execute("PRAGMA user_version = 7")
    file.close()
    with pytest.raises(ExecutionLogUnusable, match=r"has version 7 and this mle_gym reads version 1; resume with"):
        ExecutionLog(path)
    path.write_text("seed = 1\n" * 200)
    with pytest.raises(ExecutionLogUnusable, match=r"is damaged \(file is not a database\); move it"):
        ExecutionLog(path)
    path.unlink()
    file = sqlite3.connect(path)
    file.execute("CREATE TABLE x (y)")
    file.close()
    with pytest.raises(ExecutionLogUnusable, match=r"is not an execution log, or was cut; move it"):
        ExecutionLog(path)


def test_an_older_copy_is_noticed(whole: Path, tmp_path: Path) -> None:
    shutil.copy(whole, tmp_path / "log")
    with pytest.raises(ExecutionLogUnusable, match=r"was cut: it ends at record 60 and samples\.jsonl knows record 61"):
        ExecutionLog(tmp_path / "log", after=61)


def test_a_run_with_executions_is_not_written_over(tmp_path: Path) -> None:
    run = tmp_path / "run"
    folder = RunFolder.create(run, TrainConfig())
    folder.open_executions()
    folder.close()
    RunFolder.create(run, TrainConfig()).close()  # nothing was run yet
    folder, _ = RunFolder.open(run)
    folder.open_executions().append(record())
    folder.close()
    with pytest.raises(Exception, match="is not empty; choose another --run"):
        RunFolder.create(run, TrainConfig())
