"""What duration weights, instrumentation and self-improvement each add: the method with one of them taken away.

Run it with ``python -m benchmarks.ablations``: two tasks, three seeds, four arms, at most four minutes a run. Runs that
are finished are not repeated, so it may be stopped and called again. Only the embedded tiny policy is trained: the
paper's figures stand beside the table for the direction of the effects, not for their size.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.common import BenchmarkOptions, parse, print_header, print_table, save
from mle_gym.outcome import Outcome
from trainers.async_ppo.run import run_training
from trainers.common.config import TrainConfig, load_config
from trainers.common.report.data import RunData, read_run
from trainers.common.report.picture import standalone
from trainers.common.report.plots import line_plot

__all__ = ["ARMS", "PAPER", "interval", "main", "measure"]

ARMS: Mapping[str, tuple[str, ...]] = {
    "full": (),
    "no duration weights": ("weights.rule=none",),
    "no instrumentation": ("env.kwargs.instrumenter=none",),
    "no self-improvement": ("env.improve=0.0",),
}
"""Arm -> what it changes in the recipe."""
PAPER: Mapping[str, str] = {
    "no duration weights": "weights: +3.85 % on average; pizza, mean seconds of a program: with 105 at step 5, 70 at "
    "20, 5 at 35; without 102 at 5, 10 at 24, 2 from 31 on",
    "no instrumentation": "instrumentation: +22.06 % on average, fewer runs without any valid program; score, invalid "
    "= -10: tweet -3 with and -8 without at step 30, essay 0 and -7",
    "no self-improvement": "improve prompts: +8 % on average, better on 10 of 12 tasks",
}
"""What arXiv 2509.01684 says of each part (3B policy, MLE-bench)."""
_FLOOR = {"normalized": -1.0, "paper": -10.0}
"""Reward of a program that earned nothing, by the reward's name."""
_BINS = 10


@dataclass(frozen=True)
class Options(BenchmarkOptions):
    """Train with one part of the method taken away at a time."""

    config: Path = Path("recipes/ablations.toml")
    """The recipe with all parts."""
    tasks: tuple[str, ...] = ("mle_gym/credit-default-v0", "mle_gym/concrete-strength-v0")
    """Environment ids, each trained on alone."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """One run of every arm for each."""
    arms: tuple[str, ...] = tuple(ARMS)
    """Which arms: full, "no duration weights", "no instrumentation", "no self-improvement"."""
    minutes: float = 4.0
    """Longest run."""
    out: Path = Path("runs/ablations")
    """Folder of the runs and the pictures; finished runs in it are kept."""
    set: tuple[str, ...] = ()
    """Changes of the recipe for every arm, for example schedule.updates=60 policy.name=smollm2."""


@dataclass(frozen=True)
class Run:
    """What one run came to. Scores leave partial credit out, so that arms with and without it compare."""

    updates: int
    reward: list[float]
    """Mean over the programs of each tenth of the updates; an invalid program counts the reward's floor."""
    valid: list[float]
    """Share of scored programs, by tenth."""
    seconds: list[float]
    """Mean duration of the programs that ran, by tenth."""
    best_private_score: float
    """Of the program with the best public score; nan where none was valid."""


def main(argv: Sequence[str] | None = None) -> int:
    """Make the runs that are missing, print the tables, save pictures and numbers."""
    options = parse(Options, argv)
    unknown = set(options.arms) - set(ARMS)
    if unknown:
        raise SystemExit(f"There is no arm {sorted(unknown)[0]!r}; choose from {', '.join(ARMS)}.")
    changes, seeds, tasks = [*options.set], options.seeds, options.tasks
    if options.quick:
        changes += ["schedule.updates=2", "schedule.batch_size=6", "generation.max_new_tokens=160"]
        seeds, tasks = seeds[:2], tasks[:1]
    print_header(f"Ablations of {options.config}", options)
    results: dict[str, dict[str, list[Run]]] = {task: {arm: [] for arm in options.arms} for task in tasks}
    # Seeds outermost: whenever it is stopped, the arms have been given alike.
    for seed in seeds:
        for task in tasks:
            for arm in options.arms:
                folder = options.out / task.rpartition("/")[2] / f"{arm.replace(' ', '-')}-{seed}"
                own = [*changes, *ARMS[arm], "schedule.evaluate=0", f"schedule.max_seconds={54 * options.minutes}"]
                config = dataclasses.replace(
                    load_config(options.config, [*own, f'env.ids=["{task}"]']), seed=seed, run=str(folder)
                )
                results[task][arm].append(measure(_finish(folder, config), config))
    for task, arms in results.items():
        print_table(("arm", *_COLUMNS), [(arm, *_cells(runs)) for arm, runs in arms.items()], title=task)
        panels = {title: _draw(title, name, arms) for title, name in _PANELS.items()}
        picture = options.out / f"{task.rpartition('/')[2]}.svg"
        picture.write_text(standalone(panels), encoding="utf-8")
        print(f"{picture}\n")
    if "full" in options.arms:
        print_table(
            ("taken away", *(f"reward lost, {task.rpartition('/')[2]}" for task in results), "arXiv 2509.01684"),
            [
                (arm, *(_loss(arms, arm) for arms in results.values()), PAPER[arm])
                for arm in options.arms
                if arm in PAPER
            ],
        )
    print(f"± is the half width of a 95 % interval over {len(seeds)} seeds; reward is that of the last tenths.")
    if options.quick:
        print("--quick: this decides nothing.")
    numbers = {
        task: {arm: [dataclasses.asdict(run) for run in runs] for arm, runs in arms.items()}
        for task, arms in results.items()
    }
    save(options.json or options.out / "ablations.json", options, {"runs": numbers, "paper": dict(PAPER)})
    return 0


_COLUMNS = ("reward", "valid", "seconds of a program", "best private score", "updates")
_PANELS = {"Reward without partial credit": "reward", "Valid programs": "valid", "Seconds of a program": "seconds"}


def _finish(folder: Path, config: TrainConfig) -> RunData:
    """Return a run's records; make the run, or what is missing of it.

    Raises:
        SystemExit: A signal stopped it, or the folder's run has another configuration.
    """
    print(f"--- {folder}", flush=True)
    started = (folder / "config.toml").is_file()
    if started:
        found = load_config(folder / "config.toml")
        if dataclasses.replace(found, policy=config.policy) != config:
            raise SystemExit(f"{folder} holds a run with another configuration; choose another --out.")
    if not (folder / "summary.json").is_file():
        samples = folder / "samples.jsonl"
        begun = started and samples.is_file() and samples.stat().st_size > 0
        code = run_training(config, folder if begun else None)
        if code:
            raise SystemExit(code)
    return read_run(folder)


def measure(data: RunData, config: TrainConfig) -> Run:
    """Return the curves of a run over ten parts of its planned updates; nan where a part has no program.

    Raises:
        SystemExit: The reward's floor is not known.
    """
    name = str(config.env.kwargs.get("reward", "paper"))
    if name not in _FLOOR:
        raise SystemExit(f"Ablations need reward normalized or paper, not {name!r}.")
    parts: list[list[Mapping[str, Any]]] = [[] for _ in range(_BINS)]
    for sample in data.samples:
        if sample["reward_valid"]:
            place = int(sample["version"]) * _BINS // config.schedule.updates
            parts[min(place, _BINS - 1)].append(sample)
    scored = [[sample["outcome"] == Outcome.SCORED for sample in part] for part in parts]
    rewards = [
        [float(sample["reward"]) if good else _FLOOR[name] for sample, good in zip(part, flags, strict=True)]
        for part, flags in zip(parts, scored, strict=True)
    ]
    ran = [[float(sample["duration"]) for sample in part if sample["duration"] > 0] for part in parts]
    private = data.summary.get("best_private_score")
    return Run(
        updates=len(data.metrics),
        reward=[_mean(values) for values in rewards],
        valid=[_mean(flags) for flags in scored],
        seconds=[_mean(values) for values in ran],
        best_private_score=math.nan if private is None else float(private),
    )


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of the known values and the half width of its 95 % interval (Student's t); nan below two."""
    known = [value for value in values if not math.isnan(value)]
    if len(known) < 2:
        return (known[0] if known else math.nan), math.nan
    return statistics.fmean(known), float(student.ppf(0.975, len(known) - 1)) * statistics.stdev(known) / len(
        known
    ) ** 0.5


def _last(values: Sequence[float]) -> float:
    """Mean of the last three tenths that have programs."""
    return _mean([value for value in values if not math.isnan(value)][-3:])


def _cells(runs: Sequence[Run]) -> list[str]:
    columns = (
        [_last(run.reward) for run in runs],
        [_last(run.valid) for run in runs],
        [_last(run.seconds) for run in runs],
        [run.best_private_score for run in runs],
        [float(run.updates) for run in runs],
    )
    return [_plus_minus(*interval(values)) for values in columns]


def _loss(arms: Mapping[str, Sequence[Run]], arm: str) -> str:
    """Return how much of the full method's final reward is lost without a part, seed by seed."""
    pairs = zip(arms["full"], arms[arm], strict=True)
    return _plus_minus(*interval([_last(full.reward) - _last(without.reward) for full, without in pairs]))


def _plus_minus(mean: float, half: float) -> str:
    if math.isnan(mean):
        return "-"
    return f"{mean:.3g}" if math.isnan(half) else f"{mean:.3g} ± {half:.2g}"


def _draw(title: str, name: str, arms: Mapping[str, Sequence[Run]]) -> str:
    """Draw a curve for each arm, with its interval over the seeds."""
    curves = {
        arm: [interval(values) for values in zip(*(getattr(run, name) for run in runs), strict=True)]
        for arm, runs in arms.items()
    }
    return line_plot(
        [(number + 0.5) / _BINS for number in range(_BINS)],
        {arm: [mean for mean, _ in curve] for arm, curve in curves.items()},
        bands={arm: [(mean - half, mean + half) for mean, half in curve] for arm, curve in curves.items()},
        title=title,
        xlabel="share of the updates",
        ylabel=title.lower(),
        share=name == "valid",
        whole=False,
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else math.nan


if __name__ == "__main__":
    sys.exit(main())
