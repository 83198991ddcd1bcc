"""Runs the hooks and a program in a plain child process, with a pipe for the reports: no sandbox needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.sandbox.base import Program, Reached

CHILD = Path(__file__).with_name("child.py")
FEATURES = ["a", "b", "c", "d"]


@dataclass(frozen=True)
class Run:
    reached: tuple[Reached, ...]
    stdout: str
    stderr: str
    code: int | None

    @property
    def names(self) -> set[str]:
        return {item.name for item in self.reached}


def make_data(folder: Path, train: int = 300, test: int = 100) -> None:
    """A table with four columns and a label that follows from them, as ``input/`` of a task."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(3)
    x = rng.normal(size=(train + test, 4))
    table = pd.DataFrame(x, columns=FEATURES).assign(id=np.arange(train + test))
    table["y"] = (x[:, 0] + 0.5 * x[:, 1] ** 2 + 0.1 * rng.normal(size=train + test) > 0.3).astype(int)
    table[:train].to_csv(folder / "train.csv", index=False)
    table[train:].drop(columns="y").to_csv(folder / "test.csv", index=False)
    table[train:][["id"]].assign(y=0).to_csv(folder / "sample_submission.csv", index=False)


def run_program(program: Program, work: Path, *, warm: bool = False, timeout: float = 60.0) -> Run:
    """Run a program in ``work``; ``warm`` forks it from a process that has imported scikit-learn."""
    job = {"source": program.source, "hooks": program.hooks, "context": dict(program.context), "warm": warm}
    read, write = os.pipe()
    environment = {"PATH": os.environ["PATH"], "HOME": str(work), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-P", str(CHILD), str(write)],
        cwd=work,
        env=environment,
        pass_fds=(write,),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    os.close(write)
    try:
        stdout, stderr = process.communicate(json.dumps(job), timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        stdout, stderr = process.communicate()
    with os.fdopen(read) as pipe:
        lines = [json.loads(line) for line in pipe.read().splitlines()]
    reached = tuple(Reached(name, stamp - start, evidence) for name, evidence, stamp in lines)
    return Run(reached, stdout, stderr, process.returncode)
