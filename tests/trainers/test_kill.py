"""A real run, killed at random moments: no finished execution is lost, none counts twice, nothing stays behind."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from trainers.common.config import TrainConfig
from trainers.common.execution_log import ExecutionLog
from trainers.common.schema import build

ROOT = Path(__file__).parents[2]
UPDATES, BATCH = 5, 8


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    (folder / "tmp").mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "mle_gym", "train", *arguments],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "TMPDIR": str(folder / "tmp"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def executions(run: Path) -> list[tuple[int, int]]:
    """Ticket and number of each valid training execution in the log, as another process sees them."""
    path = run / "executions.sqlite"
    if not path.is_file():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
        query = "SELECT ticket, id FROM executions WHERE valid AND ticket IS NOT NULL ORDER BY id"
        return [tuple(row) for row in file.execute(query)]


def received(run: Path) -> set[int]:
    """Tickets that the trainer has on record."""
    path = run / "samples.jsonl"
    content = path.read_bytes() if path.is_file() else b""
    return {json.loads(line)["ticket"] for line in content[: content.rfind(b"\n") + 1].splitlines()}


def ripe(run: Path, count: int, caught: bool) -> bool:
    """Whether so many executions have finished, and, where asked, one that the trainer does not know yet."""
    finished = dict(executions(run))
    return len(finished) >= count and (not caught or bool(finished.keys() - received(run)))


def family(pid: int) -> set[int]:
    """A process and all its descendants."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found, edge = {pid}, {pid}
    while edge := {child for child, parent in parents.items() if parent in edge} - found:
        found |= edge
    return found


def alive(pids: set[int]) -> set[int]:
    living = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                living.add(pid)
    return living


def wait_for(condition: Callable[[], Any], process: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + 200
    while not condition():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.01)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill the process alone, and see that what it started goes too."""
    started = family(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_for(lambda: not alive(started))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "admission"),
    [
        (1, {"rule": "oldest_first", "lookahead": 1}),
        (2, {"rule": "race", "multiplier": 2.0, "leftovers": "keep"}),
    ],
)
def test_kills_at_random_moments(tiny_folder: Path, tmp_path: Path, seed: int, admission: dict[str, Any]) -> None:
    config = build(
        TrainConfig,
        {
            "env": {"ids": ["tests.trainers.letters:Letters-v0"], "slots": 4, "kwargs": {"cores": 0, "time_limit": 30}},
            "policy": {"name": str(tiny_folder)},
            "generation": {"max_new_tokens": 2},
            "admission": admission,
            # A learner that takes its time, so that programs end while nobody can receive them.
            "algorithm": {"learning_rate": 0.001, "epochs": 30},
            "schedule": {"updates": UPDATES, "batch_size": BATCH, "checkpoint_every": 2, "evaluate": 0},
            "run": str(tmp_path / "run"),
            "seed": seed,
        },
    )
    file, run, rng = tmp_path / "config.toml", Path(config.run), random.Random(seed)
    file.write_text(config.to_toml())
    first = ["--config", str(file)]
    known: dict[int, int] = {}
    unseen = 0
    for target, caught in ((1, False), (BATCH + 3, True), (3 * BATCH, True)):
        process = start(tmp_path, *(["--resume", str(run)] if (run / "config.toml").is_file() else first))
        wait_for(partial(ripe, run, target, caught), process)
        time.sleep(rng.uniform(0.0, 0.05 if caught else 0.6))
        kill(process)
        finished = dict(executions(run))
        assert known.items() <= finished.items()
        known = finished
        unseen += len(finished.keys() - received(run))
        # One folder is left of the killed process, and none of those before it.
        assert len(list((tmp_path / "tmp").glob("mle_gym-*"))) == 1
    process = start(tmp_path, "--resume", str(run))
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output

    rows = executions(run)
    assert max(Counter(ticket for ticket, _ in rows).values()) == 1, "an execution was repeated"
    assert known.items() <= dict(rows).items()
    samples = [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]
    tickets = [sample["ticket"] for sample in samples]
    assert len(tickets) == len(set(tickets))
    with ExecutionLog(run / "executions.sqlite") as log:
        recorded = {found.id: found for found in log.read()}
    for sample in samples:
        if sample["outcome"] == "cancelled":
            continue
        origin = recorded[sample["info"]["execution"]["id"]]
        assert (origin.ticket, origin.duration, origin.outcome) == (
            sample["ticket"],
            sample["duration"],
            sample["outcome"],
        )
        assert sample["queued"] <= sample["generated"] <= sample["started"] <= sample["ended"]
    # What had finished at a kill was answered from the log, not run again; the kills did catch some.
    assert unseen > 0
    assert sum(sample["info"]["execution"]["attached"] for sample in samples if "execution" in sample["info"]) > 0
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["update"] for row in metrics] == list(range(UPDATES))
    assert metrics[-1]["trained"] == UPDATES * BATCH
    trained = json.loads((run / "audit.json").read_text())["versions"].values()
    assert sum(row["trained"] for row in trained) == UPDATES * BATCH
    if admission["rule"] == "oldest_first":
        assert sorted(tickets) == list(range(UPDATES * BATCH))
    assert list((tmp_path / "tmp").glob("mle_gym-*")) == []
    assert list((run / "submissions").iterdir()) == []


@pytest.mark.slow
def test_a_damaged_log_is_one_sentence_with_a_way_out(bandit_config: TrainConfig, tmp_path: Path) -> None:
    schedule = dataclasses.replace(bandit_config.schedule, updates=4, evaluate=0)
    config = dataclasses.replace(bandit_config, schedule=schedule)
    file, run = tmp_path / "config.toml", Path(config.run)
    file.write_text(config.to_toml())
    process = start(tmp_path, "--config", str(file))
    wait_for(lambda: (run / "samples.jsonl").is_file() and len((run / "samples.jsonl").read_bytes()) > 20_000, process)
    kill(process)
    log = run / "executions.sqlite"
    log.write_bytes(log.read_bytes()[:5000])
    for beside in run.glob("executions.sqlite-*"):
        beside.unlink()
    process = start(tmp_path, "--resume", str(run))
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 2
    assert len(output.strip().splitlines()) == 1, output
    assert "executions.sqlite was cut" in output
    assert "to another folder and resume again" in output
    log.rename(tmp_path / "old")
    process = start(tmp_path, "--resume", str(run))
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    tickets = [json.loads(line)["ticket"] for line in (run / "samples.jsonl").read_text().splitlines()]
    assert sorted(tickets) == list(range(64))
