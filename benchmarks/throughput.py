"""How many samples an hour are trained on while programs run, against what their slots allow and against TRL's GRPO.

Programs sleep for log-normal times of the same mean; responses are really sampled and every update is real. All sides
have the same tiny policy, batch, slots and durations, and take turns in one run. Run it with
``python -m benchmarks.throughput`` on a machine that does nothing else; it takes an hour.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import io
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch

from benchmarks.common import BenchmarkOptions, parse, print_header, print_table, save
from benchmarks.sleepers import ENV_ID, Trace, draw_trace, ideal_completions, play
from mle_gym import EnvPool
from trainers.async_ppo.run import run_training, seed_everything
from trainers.common.config import TrainConfig
from trainers.common.policy import Policy
from trainers.common.report.data import read_run
from trainers.common.schema import build

__all__ = ["ARMS", "Measured", "main"]

ARMS = {
    "ours": "mle-gym train, oldest_first",
    "trl": "TRL's GRPOTrainer, all programs of a batch in parallel",
    "trl-ahead": "the same with steps_per_generation=4: one wait for four batches, the last of them three updates old",
}
"""Arm -> what it is."""
_AHEAD = 4


@dataclass(frozen=True)
class Options(BenchmarkOptions):
    """Measure samples an hour with sleeping programs."""

    sigmas: tuple[float, ...] = (0.0, 1.2, 2.0)
    """Deviation of the logarithm of the seconds."""
    arms: tuple[str, ...] = tuple(ARMS)
    """Which sides: ours, trl, trl-ahead."""
    mean: float = 5.0
    """Mean seconds of a program."""
    slots: int = 8
    """Programs that run at once."""
    batch_size: int = 16
    """Samples in an update."""
    seconds: float = 300.0
    """About how long one side runs at a time."""
    repeats: int = 2
    """Turns of each side; each turn has durations of its own, the same for all sides."""
    lookahead: int = 2
    """Batches that ours starts ahead of the policy."""
    max_new_tokens: int = 128
    """Longest response."""
    policy: str = "tiny"
    """Name or folder of a causal language model."""


@dataclass(frozen=True)
class Measured:
    """What one side did in one turn."""

    arm: str
    sigma: float
    trained: int
    """Samples, up to the end of the last update."""
    seconds: float
    """From the first token to the end of the last update."""
    limit: int
    """Programs that slots which never wait complete in the same time, of the same durations in the same order."""
    busy: float
    """Share of the slots' time inside programs."""
    generating: float
    """Share of the time in which responses are sampled."""
    training: float
    """Share of the time in which the policy is updated; TRL: that is neither sampling nor executing."""

    @property
    def per_hour(self) -> float:
        """Samples trained on in an hour."""
        return 3600 * self.trained / self.seconds

    @property
    def of_limit(self) -> float:
        """Share of the physical limit."""
        return self.trained / max(1, self.limit)


def main(argv: Sequence[str] | None = None) -> int:
    """Let the sides take turns, print the table and save it where asked."""
    options = parse(Options, argv)
    unknown = set(options.arms) - set(ARMS)
    if unknown:
        raise SystemExit(f"There is no arm {sorted(unknown)[0]!r}; choose from {', '.join(ARMS)}.")
    if importlib.util.find_spec("trl") is None and options.arms != ("ours",):
        raise SystemExit("trl is not installed: pip install 'mle-gym[trl]', or measure ours alone with --arms ours.")
    if options.quick:
        # A tenth of the sleep and few updates: that everything runs, no more.
        options = dataclasses.replace(
            options, mean=options.mean / 10, seconds=5.0, repeats=1, sigmas=options.sigmas[:1], max_new_tokens=32
        )
    print_header("Samples an hour with sleeping programs", options)
    print(f"slots / mean: {3600 * options.slots / options.mean:.0f} samples an hour in the long run")
    for arm in options.arms:
        print(f"{arm}: {ARMS[arm]}")
    torch.set_num_threads(1)
    _warm_up()
    measured: list[Measured] = []
    for sigma in options.sigmas:
        for turn in range(options.repeats):
            size = 50 + int(4 * options.seconds * options.slots / options.mean)
            lengths = draw_trace(sigma, options.mean, size, seed=options.seed + turn)
            for arm in options.arms:
                measured.append(_SIDES[arm](options, sigma, lengths))
                latest = measured[-1]
                print(f"sigma {sigma:g}, turn {turn}, {arm}: {latest.trained} in {latest.seconds:.0f} s", flush=True)
    print_table(_COLUMNS, [_row(group) for group in _groups(measured)])
    for line in verdicts(measured):
        print(line)
    if options.quick:
        print("--quick: this decides nothing.")
    rows = [asdict(each) | {"per_hour": each.per_hour, "of_limit": each.of_limit} for each in measured]
    save(options.json, options, {"turns": rows, "quick_decides_nothing": options.quick})
    return 0


_COLUMNS = ("side", "sigma", "samples/h", "of the limit", "executor busy", "generating", "training")


def verdicts(measured: Sequence[Measured]) -> list[str]:
    """Compare each other side with ours at the same spread, in one sentence each."""
    sentences = []
    means = {(group[0].sigma, group[0].arm): _mean(each.per_hour for each in group) for group in _groups(measured)}
    for (sigma, arm), value in means.items():
        ours = means.get((sigma, "ours"))
        if arm != "ours" and ours is not None:
            sentences.append(f"sigma {sigma:g}: ours trains on {ours / value:.2f} times as many samples as {arm}")
    return sentences


def _groups(measured: Sequence[Measured]) -> list[list[Measured]]:
    """Return the turns of each side at each spread."""
    keys = dict.fromkeys((each.sigma, each.arm) for each in measured)
    return [[each for each in measured if (each.sigma, each.arm) == key] for key in keys]


def _row(group: Sequence[Measured]) -> tuple[str, ...]:
    shares = ("of_limit", "busy", "generating", "training")
    cells = [_spread([getattr(each, name) for each in group], "{:.1%}") for name in shares]
    return (group[0].arm, f"{group[0].sigma:g}", _spread([each.per_hour for each in group], "{:.0f}"), *cells)


def _spread(values: Sequence[float], form: str) -> str:
    """Return the mean, and the lowest and highest where there are several."""
    mean = form.format(_mean(values))
    return mean if len(values) == 1 else f"{mean} ({form.format(min(values))} to {form.format(max(values))})"


def _mean(values: Iterable[float]) -> float:
    return statistics.fmean(values)


def _warm_up() -> None:
    """Start the sandbox, so that no side pays for it."""
    env = gym.make(ENV_ID)
    play(Trace([0.01]))
    env.reset(seed=0)
    env.step("")
    env.close()


def busy_share(runs: Sequence[tuple[float, float]], slots: int, begin: float, end: float) -> float:
    """Return the share of the slots' time between ``begin`` and ``end`` that lies inside programs."""
    inside = sum(max(0.0, min(end, stop) - max(begin, start)) for start, stop in runs)
    return inside / (slots * (end - begin))


def _ours(options: Options, sigma: float, lengths: Sequence[float]) -> Measured:
    """Train with ``mle-gym train`` until the time is up."""
    play(Trace(lengths))
    with tempfile.TemporaryDirectory(prefix="throughput-") as folder, contextlib.redirect_stdout(io.StringIO()):
        run = Path(folder) / "run"
        values = {
            "env": {"ids": [ENV_ID], "slots": options.slots},
            "policy": {"name": options.policy},
            "generation": {"max_new_tokens": options.max_new_tokens, "batch_size": options.batch_size},
            "admission": {"rule": "oldest_first", "lookahead": options.lookahead},
            "schedule": {
                "updates": 10**6,
                "batch_size": options.batch_size,
                "max_seconds": options.seconds,
                "evaluate": 0,
                "stall_seconds": 86_400.0,
            },
            "run": str(run),
            "seed": options.seed,
        }
        code = run_training(build(TrainConfig, values))
        if code:
            raise SystemExit(code)
        data = read_run(run)
    begin, end = min(sample["queued"] for sample in data.samples), float(data.metrics[-1]["seconds"])
    stops = [(sample["ended"] - sample["info"]["grade_time"], sample["duration"]) for sample in data.samples]
    spent = {name: sum(row[f"{name}_seconds"] for row in data.metrics) for name in ("generate", "learn")}
    return Measured(
        arm="ours",
        sigma=sigma,
        trained=int(data.metrics[-1]["trained"]),
        seconds=end - begin,
        limit=ideal_completions(lengths, options.slots, end - begin),
        busy=busy_share([(stop - duration, stop) for stop, duration in stops], options.slots, begin, end),
        generating=spent["generate"] / (end - begin),
        training=spent["learn"] / (end - begin),
    )


class _Clock:
    """Sums up the time inside calls."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.begin = float("nan")
        """Of the first call."""

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            start = time.monotonic()
            if self.begin != self.begin:
                self.begin = start
            try:
                return function(*arguments, **named)
            finally:
                self.seconds += time.monotonic() - start

        return timed


def _trl(options: Options, sigma: float, lengths: Sequence[float], ahead: int = 1) -> Measured:
    """Train with TRL for a number of steps that is fixed beforehand: stopping by the clock would favour long steps."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    trace = Trace(lengths)
    play(trace)
    seed_everything(options.seed)
    policy, size = Policy.load(options.policy), options.batch_size
    share = 0.4 if ahead == 1 else 0.7
    steps = max(1, round(share * options.seconds * options.slots / options.mean / size / ahead)) * ahead
    generating, executing = _Clock(), _Clock()
    policy.model.generate = generating(policy.model.generate)
    with (
        tempfile.TemporaryDirectory(prefix="throughput-") as folder,
        EnvPool([partial(gym.make, ENV_ID)] * (size * ahead), options.slots) as pool,
        contextlib.redirect_stdout(io.StringIO()),
    ):
        prompt = str(pool.reset(seed=options.seed)[0].obs)
        messages = [{"role": "user", "content": prompt}] if policy.tokenizer.chat_template else prompt + "\n"
        arguments = GRPOConfig(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=size,
            num_generations=size,
            steps_per_generation=ahead,
            max_completion_length=options.max_new_tokens,
            learning_rate=1e-4,
            temperature=1.0,
            seed=options.seed,
            use_cpu=policy.device.type == "cpu",
            bf16=False,
            activation_checkpointing=False,
            logging_strategy="no",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = GRPOTrainer(
            model=policy.model,
            reward_funcs=executing(partial(_execute, pool)),
            args=arguments,
            train_dataset=Dataset.from_list([{"prompt": messages}] * (size * ahead)),
            processing_class=policy.tokenizer,
        )
        trainer.train()
        end = time.monotonic()
    wall = end - generating.begin
    return Measured(
        arm="trl" if ahead == 1 else "trl-ahead",
        sigma=sigma,
        trained=steps * size,
        seconds=wall,
        limit=ideal_completions(lengths, options.slots, wall),
        busy=busy_share(trace.runs, options.slots, generating.begin, end),
        generating=generating.seconds / wall,
        training=(wall - generating.seconds - executing.seconds) / wall,
    )


def _execute(pool: EnvPool, completions: Sequence[Any], **_: Any) -> list[float]:
    """Reward function: run all programs of the batch at once, as many as there are slots."""
    texts = [text if isinstance(text, str) else str(text[-1]["content"]) for text in completions]
    places = {pool.send(index, text): index for index, text in enumerate(texts)}
    rewards = [0.0] * len(texts)
    for result in pool.recv(min_ready=len(texts)):
        rewards[places[result.ticket]] = result.reward
    return rewards


_SIDES: Mapping[str, Callable[[Options, float, Sequence[float]], Measured]] = {
    "ours": _ours,
    "trl": _trl,
    "trl-ahead": partial(_trl, ahead=_AHEAD),
}

if __name__ == "__main__":
    sys.exit(main())
