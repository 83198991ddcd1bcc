"""What an admission rule and a sample weight do to slow, good actions: every rule with every weight.

Run it with ``python -m benchmarks.duration_bias``. The tables come from a simulated clock and many seeds
(:mod:`benchmarks.selection`); the last one from the trainer itself, with a language model and programs that sleep.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.common import BenchmarkOptions, parse, print_header, print_table, save
from benchmarks.selection import Batch, Kind, Simulation, TokenPolicy
from benchmarks.sleeping_bandit import real_sleep
from trainers.common.admission import Admission, DropStale, InOrder, OldestFirst, Race
from trainers.common.advantages import leave_one_out
from trainers.common.config import WeightsConfig
from trainers.common.inclusion import survival
from trainers.common.losses import ppo_clip
from trainers.common.weigher import Weigher

__all__ = ["main"]

Floats = NDArray[np.float64]

BATCH, SLOTS = 16, 32
KINDS = (Kind("crash", 0.3, -1.0, 0.1), Kind("fast", 0.5, 0.3, 1.0), Kind("slow", 0.2, 1.0, 10.0))
SLOW = 2
SLEEPERS = (Kind("crash", 0.4, -1.0, 0.1), Kind("work", 0.4, 1.0, 1.0), Kind("sleep", 0.2, 1.0, 10.0, cpu=1.0))
RULES: dict[str, Callable[[], Admission]] = {
    "synchronous (race, m = 1)": lambda: Race(BATCH, 1.0),
    "race, m = 2, keep": lambda: Race(BATCH, 2.0, "keep"),
    "oldest_first, lookahead 3": lambda: OldestFirst(BATCH, 3),
    "in_order, lookahead 16": lambda: InOrder(BATCH, 16),
    "drop_stale, 8 updates": lambda: DropStale(BATCH, 2.0, 8),
    "drop_stale, 7 updates, cancel": lambda: DropStale(BATCH, 2.0, 7, "cancel"),
    "drop_stale, 4 updates": lambda: DropStale(BATCH, 2.0, 4),
    "drop_stale, 2 updates": lambda: DropStale(BATCH, 2.0, 2),
    "race, m = 1.125, cancel": lambda: Race(BATCH, 1.125, "cancel"),
    "race, m = 1.25, cancel": lambda: Race(BATCH, 1.25, "cancel"),
    "race, m = 1.5, cancel": lambda: Race(BATCH, 1.5, "cancel"),
    "race, m = 2, cancel": lambda: Race(BATCH, 2.0, "cancel"),
}
MODELS = {"the paper's model, n ~ pi / dt": BATCH, "the same, batches of 2048": 2048}
"""Not rules: samples drawn in the proportion for which the paper's weight is derived. The weight is a self-normalised
ratio, so it is exact in large batches only."""
WEIGHTS = {name: WeightsConfig(rule=name) for name in ("none", "duration", "inclusion")}  # type: ignore[arg-type]
SUPPORTED = 0.2
"""Where G is at least this for the slowest actions, inclusion is expected to leave the least bias."""
_CAP = 5000.0
"""Simulated seconds after which a policy has not found the slow action."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the tables, and save every number where asked."""
    options = parse(BenchmarkOptions, argv)
    print_header("Bias of duration: admission rules and weights on a fast/slow bandit", options)
    torch.set_num_threads(1)
    seeds = [options.seed + number for number in range(3 if options.quick else 12)]
    updates = 40 if options.quick else 140
    rows = {name: _frozen(name, seeds, updates) for name in (*MODELS, *RULES)}
    _print_shares(rows)
    _print_gradients(rows)
    verdict = _verdict(rows)
    print(verdict + "\n")
    found = _search(seeds[: 2 if options.quick else 8], 40 if options.quick else 200)
    sleepers = _sleepers(seeds, updates)
    with tempfile.TemporaryDirectory() as folder:
        real = real_sleep(Path(folder), updates=6 if options.quick else 30, seed=options.seed)
    results = {"bias": rows, "verdict": verdict, "search": found, "sleepers": sleepers, "real_sleep": real}
    save(options.json, options, results)
    return 0


def _frozen(name: str, seeds: Sequence[int], updates: int) -> dict[str, Any]:
    """Sample batches of a policy that does not change, and weigh each with every rule."""
    exact, scores = TokenPolicy(KINDS).exact_gradient(), TokenPolicy(KINDS).scores()
    collected: dict[str, dict[str, list[Any]]] = {
        weight: {"share": [], "gradient": [], "variance": [], "unsupported": [], "effective": []} for weight in WEIGHTS
    }
    facts: dict[str, list[float]] = {"included": [], "least_g": [], "busy": [], "lag": []}
    for seed in seeds:
        simulation = None if name in MODELS else Simulation(RULES[name](), TokenPolicy(KINDS), SLOTS, seed)
        batches = _model_batches(MODELS[name], updates, seed) if simulation is None else simulation.batches(updates)
        weighers = {weight: Weigher(config) for weight, config in WEIGHTS.items()}
        of_seed: dict[str, dict[str, list[Any]]] = {
            weight: {"share": [], "gradient": [], "unsupported": [], "effective": []} for weight in WEIGHTS
        }
        lags = []
        for number, batch in enumerate(batches):
            if number < updates // 4:  # the queue fills, and G is learned
                continue
            advantages = leave_one_out([sample.reward for sample in batch.samples], [0] * len(batch.samples))
            score = scores[tuple(np.array(batch.actions).T)]
            lags.append(batch.lags.mean())
            for weight, weigher in weighers.items():
                weighed = weigher.weigh(batch.samples, batch.likely)
                own = of_seed[weight]
                own["share"].append(float(weighed.values[batch.kinds == SLOW].sum() / weighed.values.sum()))
                own["gradient"].append((weighed.values * advantages) @ score / len(batch.samples))
                own["unsupported"].append(weighed.unsupported)
                own["effective"].append(weighed.effective / len(batch.samples))
        for weight, own in of_seed.items():
            gradients = np.array(own["gradient"])
            collected[weight]["gradient"].append(gradients.mean(0))
            collected[weight]["variance"].append(float(gradients.var(0, ddof=1).sum() / (exact @ exact)))
            for key in ("share", "unsupported", "effective"):
                collected[weight][key].append(float(np.mean(own[key])))
        if simulation is not None:
            for key, value in _facts(simulation).items():
                facts[key].append(value)
            facts["lag"].append(float(np.mean(lags)))
    weights = {weight: _summary(values, exact) for weight, values in collected.items()}
    return {"weights": weights, **{key: float(np.mean(values)) if values else None for key, values in facts.items()}}


def _model_batches(size: int, updates: int, seed: int) -> list[Batch]:
    """Batches in which each action has the frequency pi / dt."""
    source = Simulation(Race(BATCH, 1.0), TokenPolicy(KINDS), SLOTS, seed)
    pool = [
        (sample, kind, action)
        for batch in source.batches(updates)
        for sample, kind, action in zip(batch.samples, batch.kinds, batch.actions, strict=True)
    ]
    frequency = np.array([1.0 / max(0.1, sample.duration) for sample, _, _ in pool])
    rng = np.random.default_rng(seed)
    result = []
    for _ in range(updates):
        chosen = [pool[at] for at in rng.choice(len(pool), size=size, p=frequency / frequency.sum())]
        samples, kinds, actions = map(list, zip(*chosen, strict=True))
        result.append(Batch(samples, np.array(kinds), actions, np.ones(size), 0.0, np.zeros(size, dtype=np.int64)))
    return result


def _facts(simulation: Simulation) -> dict[str, float]:
    """Share of slow actions that were trained, G at a long duration, and how busy the slots were."""
    settled = simulation.trained | simulation.dropped
    slow = {ticket: seconds for ticket, (kind, seconds) in simulation.launched.items() if kind == SLOW}
    lives = [row for row in simulation.inclusion.state()["lives"] if row[3] is not None]
    ages = [max(0.0, until - born) for _, born, _, until, _ in lives]
    longest = np.quantile(list(slow.values()), 0.95)
    return {
        "included": float(np.mean([ticket in simulation.trained for ticket in slow if ticket in settled])),
        "least_g": float(survival(ages, [row[4] for row in lives], [longest])[0]),
        "busy": simulation.busy / (simulation.clock * SLOTS),
    }


def _summary(values: Mapping[str, list[Any]], exact: Floats) -> dict[str, Any]:
    """Bias and variance over seeds, with 95 % bootstrap intervals."""
    policy = KINDS[SLOW].probability
    gradients = np.array(values["gradient"])
    towards = gradients[:, SLOW] / exact[SLOW] - 1
    count = len(gradients)
    # The mean of a few seeds is off by chance too; that part is taken out of the squared distance.
    distance = float(np.sum((gradients.mean(0) - exact) ** 2) - gradients.var(0, ddof=1).sum() / count)
    return {
        "share_bias": _interval(np.array(values["share"]) - policy),
        "slow_gradient_bias": _interval(towards),
        "gradient_bias": math.sqrt(max(0.0, distance) / float(exact @ exact)),
        "gradient_variance": _interval(np.array(values["variance"])),
        "unsupported": float(np.mean(values["unsupported"])),
        "effective": float(np.mean(values["effective"])),
    }


def _interval(values: Floats, statistic: Callable[..., Any] = np.mean) -> list[float]:
    """The statistic and its 95 % bootstrap interval over seeds."""
    rng = np.random.default_rng(0)
    drawn = statistic(values[rng.integers(len(values), size=(2000, len(values)))], axis=1)
    # The statistic may be infinite; linear interpolation between two infinities is nan.
    low, high = np.quantile(drawn, [0.025, 0.975], method="nearest")
    return [float(statistic(values)), float(low), float(high)]


def _print_shares(rows: Mapping[str, Any]) -> None:
    print_table(
        ("admission", *(f"weights: {weight}" for weight in WEIGHTS), "slow included", "G, slowest", "unsupported"),
        [
            (
                name,
                *(_cell(row["weights"][weight]["share_bias"]) for weight in WEIGHTS),
                _number(row["included"], "{:.0%}"),
                _number(row["least_g"], "{:.2f}"),
                f"{row['weights']['inclusion']['unsupported']:.1%}",
            )
            for name, row in rows.items()
        ],
        title=f"Weighted share of slow actions among the trained, less the policy's {KINDS[SLOW].probability:.0%} "
        "(95 % interval over seeds)",
    )
    print()


def _print_gradients(rows: Mapping[str, Any]) -> None:
    print_table(
        ("admission", *(f"weights: {weight}" for weight in WEIGHTS)),
        [
            (
                name,
                *(
                    f"{values['slow_gradient_bias'][0]:+.0%} "
                    f"[{values['slow_gradient_bias'][1]:+.0%}, {values['slow_gradient_bias'][2]:+.0%}]"
                    f"  {values['gradient_bias']:4.0%}  {values['gradient_variance'][0]:.2f}"
                    for values in row["weights"].values()
                ),
            )
            for name, row in rows.items()
        ],
        title="Policy gradient less the exact one: towards slow actions (with interval), the whole bias, both "
        "relative; then the variance over the squared exact gradient",
    )
    print()


def _verdict(rows: Mapping[str, Any]) -> str:
    """Say whether inclusion leaves the least bias wherever slow actions are supported."""
    worse, counted, dropping = [], 0, 0
    for name, row in rows.items():
        if name in MODELS or row["least_g"] < SUPPORTED:
            continue
        counted += 1
        dropping += row["included"] < 1
        biases = {weight: values["share_bias"] for weight, values in row["weights"].items()}
        best = min(biases, key=lambda weight: abs(biases[weight][0]))
        mean, low, high = biases["inclusion"]
        # An interval that holds 0, or a bias no larger than the best's, is as good as it gets with these seeds.
        if not (low <= 0 <= high or abs(mean) <= abs(biases[best][0]) + 1e-12):
            worse.append(f"{name} ({best} {biases[best][0]:+.3f}, inclusion {mean:+.3f})")
    where = f"Where G of the slowest is at least {SUPPORTED} ({counted} rules, {dropping} of which drop)"
    if worse:
        return f"{where}, inclusion does not leave the least bias with: {'; '.join(worse)}."
    return f"{where}, inclusion leaves the least bias of the trained share, or none that these seeds can see."


SEARCH = (
    "synchronous (race, m = 1)",
    "race, m = 2, keep",
    "oldest_first, lookahead 3",
    "in_order, lookahead 16",
    "drop_stale, 8 updates",
    "drop_stale, 2 updates",
    "race, m = 2, cancel",
)


def _search(seeds: Sequence[int], updates: int) -> dict[str, Any]:
    """Train from a policy that rarely takes the slow, better action until it takes it half of the time."""
    rare = (Kind("crash", 0.3, -1.0, 0.1), Kind("fast", 0.62, 0.3, 1.0), Kind("slow", 0.08, 1.0, 10.0))
    found: dict[str, Any] = {}
    for name in SEARCH:
        found[name] = {}
        for weight, config in WEIGHTS.items():
            times = np.array([_time_to_find(RULES[name](), config, rare, seed, updates) for seed in seeds])
            middle = [None if math.isinf(value) else value for value in _interval(times, np.median)]
            found[name][weight] = {"seconds": middle, "solved": float(np.isfinite(times).mean())}
    print_table(
        ("admission", *WEIGHTS),
        [(name, *(_found(row[weight]) for weight in WEIGHTS)) for name, row in found.items()],
        title=f"Simulated seconds until the slow action has probability 0.5 (median, interval, share of {len(seeds)} "
        f"seeds; at most {_CAP:.0f} s and {updates} updates)",
    )
    print()
    return found


def _time_to_find(
    rule: Admission, config: WeightsConfig, kinds: tuple[Kind, ...], seed: int, updates: int, goal: float = 0.5
) -> float:
    policy = TokenPolicy(kinds)
    simulation = Simulation(rule, policy, SLOTS, seed)
    for batch in simulation.batches(updates, _learner(policy, config)):
        if policy.probabilities()[0][SLOW] >= goal:
            return batch.time
        if batch.time > _CAP:
            break
    return math.inf


def _learner(policy: TokenPolicy, config: WeightsConfig, rate: float = 0.1) -> Callable[[Batch], None]:
    """Update the policy with the trainer's advantages, weights, loss and optimiser."""
    first, second = (torch.tensor(logits, requires_grad=True) for logits in (policy.first, policy.second))
    optimizer = torch.optim.AdamW([first, second], lr=rate, betas=(0.9, 0.95), weight_decay=0.0)
    weigher = Weigher(config)

    def update(batch: Batch) -> None:
        rewards = [sample.reward for sample in batch.samples]
        one, two = torch.tensor(batch.actions).T
        logprobs = torch.stack([first.log_softmax(-1)[one], second.log_softmax(-1)[one, two]], dim=1)
        behaviour = torch.tensor([sample.generation.logprobs for sample in batch.samples], dtype=torch.float64)
        loss = ppo_clip(
            logprobs,
            behaviour,
            torch.ones_like(behaviour),
            torch.tensor(leave_one_out(rewards, [0] * len(rewards))),
            torch.tensor(weigher.weigh(batch.samples, batch.likely).values),
            clip=0.2,
            total_tokens=float(behaviour.numel()),
        )
        optimizer.zero_grad()
        loss.value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        policy.first, policy.second = first.detach().numpy().copy(), second.detach().numpy().copy()

    return update


SLEEPER_WEIGHTS = {
    "none": WeightsConfig(rule="none"),
    "duration, wall": WeightsConfig(),
    "duration, cpu": WeightsConfig(measure="cpu"),
    "duration, wall, task_median": WeightsConfig(normalise="task_median"),
    "inclusion": WeightsConfig(rule="inclusion"),
}


def _sleepers(seeds: Sequence[int], updates: int) -> dict[str, Any]:
    """What sleeping without need gains: within a task, and for a whole task."""
    work, sleep = 1, 2
    exact = TokenPolicy(SLEEPERS).exact_gradient()
    scores = TokenPolicy(SLEEPERS).scores()
    found: dict[str, Any] = {}
    for name, config in SLEEPER_WEIGHTS.items():
        pushes, shares, masses = [], [], []
        for seed in seeds:
            policy = TokenPolicy(SLEEPERS)
            weigher = Weigher(config)
            gradients = []
            stream = Simulation(OldestFirst(BATCH, 3), policy, SLOTS, seed).batches(updates)
            for number, batch in enumerate(stream):
                if number < updates // 4:
                    continue
                advantages = leave_one_out([sample.reward for sample in batch.samples], [0] * BATCH)
                values = weigher.weigh(batch.samples, batch.likely).values
                gradients.append((values * advantages) @ scores[tuple(np.array(batch.actions).T)] / BATCH)
            mean = np.mean(gradients, axis=0) / np.tile([kind.probability for kind in SLEEPERS], 4)
            unit = exact[work] / SLEEPERS[work].probability
            pushes.append((mean[sleep] - mean[work]) / unit)
            learning = Simulation(OldestFirst(BATCH, 3), policy, SLOTS, seed)
            for _ in learning.batches(updates // 2, _learner(policy, config)):
                pass
            probabilities = policy.probabilities()[0]
            shares.append(probabilities[sleep] / (probabilities[work] + probabilities[sleep]))
            masses.append(_mass_of_a_sleeping_task(config, seed, updates // 4))
        found[name] = {
            "push": _interval(np.array(pushes)),
            "share": _interval(np.array(shares)),
            "mass": _interval(np.array(masses)),
        }
    start = SLEEPERS[sleep].probability / (SLEEPERS[work].probability + SLEEPERS[sleep].probability)
    print_table(
        ("weights", "push towards sleeping", f"share of sleepers, at first {start:.0%}", "weight of a sleeping task"),
        [
            (name, _cell(row["push"]), *(_cell(row[key], ".3f") for key in ("share", "mass")))
            for name, row in found.items()
        ],
        title="A program that sleeps 9 of its 10 s and earns no more for it, under oldest_first: gradient of the log "
        f"odds of sleeping (exact: 0; unit: that of working), share after {updates // 2} updates, and the weight of a "
        "task in which all sleep beside one in which none does (fair: 0.5)",
    )
    print()
    return found


def _mass_of_a_sleeping_task(config: WeightsConfig, seed: int, updates: int) -> float:
    """Share of the weights that a task gets whose programs all sleep, in batches half of which are another's."""
    kinds = {"awake": (Kind("work", 1.0, 1.0, 1.0),), "asleep": (Kind("sleep", 1.0, 1.0, 10.0, cpu=1.0),)}
    streams = [
        Simulation(OldestFirst(BATCH // 2, 1), TokenPolicy(kind), SLOTS, seed).batches(updates)
        for kind in kinds.values()
    ]
    weigher, masses = Weigher(config), []
    for pair in zip(*streams, strict=True):
        samples = [
            replace(sample, task=task) for task, batch in zip(kinds, pair, strict=True) for sample in batch.samples
        ]
        values = weigher.weigh(samples, np.ones(len(samples))).values
        masses.append(float(values[len(values) // 2 :].sum() / values.sum()))
    return float(np.mean(masses))


def _cell(value: Sequence[float], form: str = "+.3f") -> str:
    return f"{value[0]:{form}} [{value[1]:{form}}, {value[2]:{form}}]"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _found(row: Mapping[str, Any]) -> str:
    middle, low, high = ("never" if value is None else f"{value:.0f}" for value in row["seconds"])
    return f"{middle} [{low}, {high}] {row['solved']:.0%}"


if __name__ == "__main__":
    sys.exit(main())
