"""Runs the hooks and a program in a plain child process, with a pipe for the reports: no sandbox needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.sandbox.base import Program, Reached

CHILD = Path(__file__).with_name("child.py")
FEATURES = ["a", "b", "c", "d"]
WARM = ["numpy", "pandas", "traceback"] + [
    f"sklearn.{name}" for name in ("linear_model", "ensemble", "neighbors", "metrics", "model_selection", "pipeline")
]
"""What a warm sandbox has imported."""


@dataclass(frozen=True)
class Run:
    reached: tuple[Reached, ...]
    stdout: str
    stderr: str
    code: int

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


class Harness:
    """A process that forks for each program; ``modules`` are imported before, as in a warm sandbox."""

    def __init__(self, modules: list[str]) -> None:
        environment = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(CHILD), *modules],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, program: Program, work: Path, *, timeout: float = 60.0) -> Run:
        """Run a program in the folder ``work``, cut it after ``timeout`` seconds."""
        job = {
            "source": program.source,
            "hooks": program.hooks,
            "context": dict(program.context),
            "work": str(work),
            "timeout": timeout,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        reached = tuple(Reached(name, stamp, evidence) for name, evidence, stamp in answer["reports"])
        return Run(reached, (work / "stdout.txt").read_text(), (work / "stderr.txt").read_text(), answer["code"])

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(timeout=10)
        self.process.stdout.close()
