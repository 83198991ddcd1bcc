"""Does the demo's training teach anything? The same budget with the reward, the weights or the method taken away.

Run it with ``python -m benchmarks.controls --seeds 0 1 2``; each run keeps its folder, and ``mle-gym report`` shows it.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym

from benchmarks.common import BenchmarkOptions, parse, print_header, print_table, save
from mle_gym import EnvPool
from trainers.async_ppo.run import run_training
from trainers.common.config import AlgorithmConfig, TrainConfig, load_config
from trainers.common.evaluate import evaluate
from trainers.common.judge import Judge
from trainers.common.policy import Policy
from trainers.common.report.curves import Curves
from trainers.common.report.data import read_run
from trainers.common.report.picture import standalone
from trainers.common.report.plots import line_plot
from trainers.common.transformers_generator import TransformersGenerator
from trainers.sft import demonstrations as demos
from trainers.sft.sft import SftConfig, prompts_of, warm_start

__all__ = ["ARMS", "main"]

ARMS = {
    "start": "the policy before training",
    "full": "the recipe as it is",
    "unweighted": "weights.rule = none",
    "shuffled": "rewards of other samples of the batch",
    "own data": "supervised on its own scored programs",
    "warm start": "as many more updates on demonstrations",
}
"""Arm -> what it is."""


@dataclass(frozen=True)
class Options(BenchmarkOptions):
    """Train the demo's recipe beside controls of the same budget, and compare the policies on fresh programs."""

    config: Path = Path("recipes/demo.toml")
    """The recipe."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """One run of every arm for each."""
    arms: tuple[str, ...] = tuple(ARMS)
    """Which arms: start, full, unweighted, shuffled, own data, warm start."""
    programs: int = 128
    """Fresh programs that judge a policy."""
    out: Path | None = None
    """Folder of the runs and the picture; runs/controls-TIME by default."""
    set: tuple[str, ...] = ()
    """Changes of the recipe for every arm, for example schedule.updates=20."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run every arm with every seed, print the table, save picture and numbers."""
    options = parse(Options, argv)
    unknown = set(options.arms) - set(ARMS)
    if unknown:
        raise SystemExit(f"There is no arm {sorted(unknown)[0]!r}; choose from {', '.join(ARMS)}.")
    changes = list(options.set)
    seeds, programs = options.seeds, options.programs
    if options.quick:
        changes += ["schedule.updates=2", "schedule.batch_size=8"]
        seeds, programs = seeds[:1], 8
    # Every policy is judged below in the same way.
    recipe = load_config(options.config, [*changes, "schedule.evaluate=0"])
    out = options.out or Path(f"runs/controls-{time.strftime('%Y%m%d-%H%M%S')}")
    print_header(f"Controls of {options.config}", options)
    results: dict[str, list[dict[str, Any]]] = {arm: [] for arm in options.arms}
    for seed in seeds:
        for arm in options.arms:
            print(f"--- {arm}, seed {seed}: {ARMS[arm]}", flush=True)
            run = out / f"{arm.replace(' ', '-')}-{seed}"
            config = dataclasses.replace(recipe, seed=seed, run=str(run))
            start = time.perf_counter()
            policy = _train(arm, config, run)
            seconds = round(time.perf_counter() - start, 1)
            results[arm].append({"seed": seed, "seconds": seconds, **_judge(policy, config, programs)} | _record(run))
    print_table(("arm", *_COLUMNS.values()), [(arm, *_cells(rows)) for arm, rows in results.items()])
    _draw(out / "controls.svg", {arm: [out / f"{arm.replace(' ', '-')}-{seed}" for seed in seeds] for arm in results})
    save(options.json or out / "controls.json", options, results)
    print(f"{out / 'controls.svg'}\n{options.json or out / 'controls.json'}")
    return 0


_COLUMNS = {
    "valid_share": "valid",
    "mean_reward": "mean reward",
    "mean_public_score": "mean public score",
    "best_private_score": "private score of the best",
    "programs": "programs trained on",
    "seconds": "seconds",
}


def _train(arm: str, config: TrainConfig, run: Path) -> str:
    """Train one arm and return where its policy is.

    Raises:
        SystemExit: The run was stopped by a signal.
    """
    if arm == "start":
        return config.policy.name
    if arm == "warm start":
        return _continue_warm_start(config, run)
    algorithms = {"shuffled": "benchmarks.control_algorithms:ShuffledRewards", "own data": _OWN_DATA}
    if arm == "unweighted":
        config = dataclasses.replace(config, weights=dataclasses.replace(config.weights, rule="none"))
    elif arm in algorithms:
        options: Mapping[str, object] = {} if arm == "own data" else config.algorithm.options
        algorithm: AlgorithmConfig = dataclasses.replace(config.algorithm, name=algorithms[arm], options=options)
        config = dataclasses.replace(config, algorithm=algorithm)
    code = run_training(config)
    if code:
        raise SystemExit(code)
    return str(run / "policy")


_OWN_DATA = "benchmarks.control_algorithms:OwnData"


def _continue_warm_start(config: TrainConfig, run: Path) -> str:
    """Make as many supervised updates of the same batch size on demonstrations, and save the policy."""
    policy = Policy.load(config.policy.name, dtype=config.policy.dtype, device=config.policy.device)
    demonstrations = demos.load(SftConfig().demonstrations)
    budget = config.env.kwargs.get("token_budget", 1024)
    assert isinstance(budget, int)
    sft = SftConfig(
        updates=config.schedule.updates,
        batch_size=config.schedule.batch_size,
        learning_rate=config.algorithm.learning_rate,
        token_budgets=(budget,),
        seed=config.seed,
        threads=config.policy.threads,
    )
    warm_start(policy, demonstrations, prompts_of(demonstrations, sft.token_budgets), sft)
    policy.save(run / "policy")
    return str(run / "policy")


def _judge(name: str, config: TrainConfig, programs: int) -> dict[str, Any]:
    """Execute fresh programs of a policy and return means over the tasks; the same seed for every arm."""
    policy = Policy.load(name, dtype=config.policy.dtype, device=config.policy.device)
    ids = [env_id for env_id in config.env.ids for _ in range(config.env.slots + 1)]
    kwargs: dict[str, Any] = dict(config.env.kwargs)
    with EnvPool([partial(gym.make, env_id, **kwargs) for env_id in ids], config.env.slots) as pool:
        prompts = {ids[start.env_index]: str(start.next_obs) for start in pool.reset(seed=config.seed)}
        tables, _ = evaluate(
            pool,
            ids,
            prompts,
            TransformersGenerator(policy),
            Judge(config.env.ids, kwargs),
            samples=programs,
            max_new_tokens=config.generation.max_new_tokens,
            seed=config.seed,
        )
    keys = ("valid_share", "mean_reward", "mean_public_score", "best_public_score", "best_private_score")
    means = {key: _mean([float(table[key]) for table in tables.values()]) for key in keys}
    return {**means, "tasks": tables}


def _record(run: Path) -> dict[str, Any]:
    """Return how much a run has trained on; nothing for arms that execute no program."""
    if not (run / "samples.jsonl").is_file():
        return {"programs": 0, "updates": 0}
    data = read_run(run)
    trained = data.metrics[-1].get("trained", 0) if data.metrics else 0
    return {"programs": trained, "updates": len(data.metrics)}


def _cells(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return mean and standard error over the seeds for each column."""
    cells = []
    for key in _COLUMNS:
        values = [float(row[key]) for row in rows if not math.isnan(float(row[key]))]
        if not values:
            cells.append("-")
        elif len(values) == 1:
            cells.append(f"{values[0]:.4g}")
        else:
            cells.append(f"{_mean(values):.4g} ± {statistics.stdev(values) / math.sqrt(len(values)):.2g}")
    return cells


def _draw(path: Path, runs: Mapping[str, Sequence[Path]]) -> None:
    """Draw each arm's mean reward and scored share over the policy versions, averaged over seeds."""
    curves = {
        arm: [Curves(read_run(run).samples) for run in folders]
        for arm, folders in runs.items()
        if all((run / "samples.jsonl").is_file() for run in folders)
    }
    if not curves:
        return
    length = min(len(curve.bins) for arm in curves.values() for curve in arm)
    x = next(iter(curves.values()))[0].versions[:length]
    panels = {}
    for title, name, share in (("Mean reward", "reward", False), ("Scored programs", "scored", True)):
        series = {
            arm: [_mean([getattr(curve, name)[at] for curve in each]) for at in range(length)]
            for arm, each in curves.items()
        }
        panels[title] = line_plot(x, series, title=title, xlabel="policy version", ylabel=title.lower(), share=share)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(standalone(panels), encoding="utf-8")


def _mean(values: Sequence[float]) -> float:
    """Mean of the values that are numbers; nan where there is none."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


if __name__ == "__main__":
    sys.exit(main())
