"""What the environment costs around the program: import, make, a warm step, how busy ``EnvPool`` keeps its slots.

Run it with ``python -m benchmarks.overhead``; on a machine that does nothing else.
"""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

import mle_gym  # noqa: F401  (registers the ids)
from benchmarks.common import BenchmarkOptions, parse, print_header, print_table, save
from mle_gym.pool import EnvPool
from mle_gym.tasks.registry import list_tasks

__all__ = ["main"]

_PROGRAM = """I fit a logistic regression on the numeric columns.
```python
import os
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
submission = pd.read_csv(os.environ["MLE_SAMPLE_SUBMISSION"])
target = submission.columns[1]
columns = [c for c in test.select_dtypes("number").columns if c != submission.columns[0]]
model = make_pipeline(StandardScaler(), LogisticRegression())
model.fit(train[columns].fillna(0), train[target])
submission[target] = model.predict_proba(test[columns].fillna(0))[:, 1]
submission.to_csv("submission.csv", index=False)
```
"""
_SLEEP = "I sleep.\n```python\nimport time\ntime.sleep({seconds:.3f})\n```\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print a table, and save it where asked."""
    options = parse(BenchmarkOptions, argv)
    print_header("Overhead of the environment", options)
    env_id = next(f"mle_gym/{task.name}-v0" for task in list_tasks("offline") if task.kind == "tabular-binary")
    results: dict[str, Any] = {"id": env_id}
    results["import_s"] = _import_seconds(3 if options.quick else 9)
    results |= _make_seconds(env_id, 5 if options.quick else 50)
    results |= _step_seconds(env_id, 3 if options.quick else 30, options.seed)
    steps = 16 if options.quick else 64
    results |= _pool(env_id, slots=8, steps=steps, mean_seconds=1.0 if options.quick else 4.0, seed=options.seed)
    results["pool_busy_short"] = _pool(env_id, slots=8, steps=steps, mean_seconds=0.8, seed=options.seed)["pool_busy"]
    print_table(("what", "value"), [(_NAMES[key], _UNITS[key].format(results[key])) for key in _NAMES])
    save(options.json, options, results)
    return 0


_NAMES = {
    "import_s": "import mle_gym",
    "make_first_s": "gym.make, first",
    "make_s": "gym.make",
    "reset_first_s": "reset, first (prepares data once, reads files)",
    "reset_s": "reset",
    "step_first_s": "step, first (starts the sandbox)",
    "step_s": "warm step in all",
    "program_s": "  of it the program itself",
    "outside_s": "  outside the program",
    "outside_without_setup_s": "  outside the program, set-up left out",
    "pool_busy": "EnvPool, 8 slots: share of slot time inside programs (mean 4 s; with --quick 1 s)",
    "pool_busy_short": "the same, programs of 0.8 s",
    "pool_steps_per_s": "EnvPool: steps per second",
}
_UNITS = {key: "{:.4f} s" if key.endswith("_s") else "{:.1%}" for key in _NAMES} | {"pool_steps_per_s": "{:.1f}"}


def _import_seconds(repeats: int) -> float:
    """Median seconds that ``import mle_gym`` takes in a fresh interpreter."""
    code = "import time; t = time.perf_counter(); import mle_gym; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(repeats)]
    return statistics.median(map(float, runs))


def _make_seconds(env_id: str, repeats: int) -> dict[str, float]:
    """Seconds of ``gym.make`` and ``reset``: the first one, and the median of the others."""
    makes, resets = [], []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        env = gym.make(env_id)
        made = time.perf_counter()
        env.reset(seed=0)
        resets.append(time.perf_counter() - made)
        makes.append(made - start)
        env.close()
    return {
        "make_first_s": makes[0],
        "make_s": statistics.median(makes[1:]),
        "reset_first_s": resets[0],
        "reset_s": statistics.median(resets[1:]),
    }


def _step_seconds(env_id: str, repeats: int, seed: int) -> dict[str, float]:
    """Median seconds of a step that fits a logistic regression, in all and outside the program.

    Raises:
        RuntimeError: A step was not scored, so its times say nothing.
    """
    env = gym.make(env_id)
    walls, programs, outside, without_setup = [], [], [], []
    for number in range(repeats + 1):
        env.reset(seed=seed + number)
        start = time.perf_counter()
        _, _, _, _, info = env.step(_PROGRAM)
        wall = time.perf_counter() - start
        if info["outcome"] != "scored":
            raise RuntimeError(f"The program on {env_id} ended as {info['outcome']}: {info['message']}")
        walls.append(wall)
        programs.append(info["duration"])
        outside.append(wall - info["duration"])
        without_setup.append(wall - info["duration"] - info["setup_time"] - info["queue_time"])
    env.close()
    return {
        "step_first_s": walls[0],
        "step_s": statistics.median(walls[1:]),
        "program_s": statistics.median(programs[1:]),
        "outside_s": statistics.median(outside[1:]),
        "outside_without_setup_s": statistics.median(without_setup[1:]),
    }


def _pool(env_id: str, *, slots: int, steps: int, mean_seconds: float, seed: int) -> dict[str, float]:
    """Keep every slot supplied with sleeping programs of log-normal length; return how busy the slots were."""
    sigma = 0.8
    middle = math.log(mean_seconds) - sigma**2 / 2
    lengths = np.random.default_rng(seed).lognormal(mean=middle, sigma=sigma, size=steps)
    pool = EnvPool([partial(gym.make, env_id, cores=0)] * slots)
    waiting = [_SLEEP.format(seconds=seconds) for seconds in lengths]
    try:
        pool.reset()
        # One program in each environment first: the sandbox starts, imports are warm.
        for index in range(slots):
            pool.send(index, _SLEEP.format(seconds=0.01))
        done = 0
        while done < slots:
            done += len(pool.recv())
        busy, done, start = 0.0, 0, time.perf_counter()
        ended = [start] * slots
        for index in range(slots):
            pool.send(index, waiting.pop())
        while done < steps:
            for result in pool.recv():
                done += 1
                busy += result.info["duration"]
                ended[result.env_index] = time.perf_counter()
                if waiting:
                    pool.send(result.env_index, waiting.pop())
    finally:
        pool.close()
    # A slot counts until its own last program ends: what it idles afterwards is the end of the supply, not the pool.
    supplied = sum(end - start for end in ended)
    return {"pool_busy": busy / supplied, "pool_steps_per_s": steps / (max(ended) - start)}


if __name__ == "__main__":
    sys.exit(main())
