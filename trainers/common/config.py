"""A training run's configuration: defaults, a TOML file, overrides; checked before anything is loaded."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from mle_gym.commands.base import UserError
from trainers.common.schema import build, to_toml
from trainers.common.weights import WeightRule

__all__ = [
    "AdmissionConfig",
    "AlgorithmConfig",
    "ConfigError",
    "EnvConfig",
    "ExecutionConfig",
    "GenerationConfig",
    "PolicyConfig",
    "ScheduleConfig",
    "TrainConfig",
    "WeightsConfig",
    "load_config",
]

# Free-form tables cannot be flags; `--set env.kwargs.time_limit=20` reaches them.
Table = Annotated[Mapping[str, object], tyro.conf.Suppress]


class ConfigError(UserError):
    """A value is missing, unknown or impossible; one sentence says which and what to do."""


@dataclass(frozen=True)
class EnvConfig:
    """What is to be solved."""

    ids: tuple[str, ...] = ()
    """Environment ids, for example mle_gym/spaceship-titanic-v0; launches rotate over them."""
    kwargs: Table = field(default_factory=dict)
    """Arguments of gym.make, the same for every id."""
    slots: int = 0
    """Programs that run at once; 0 is one for each core but the learner's, and both of two."""
    improve: float = 0.0
    """Share of prompts that show an earlier valid program to improve (arXiv 2509.01684 uses 0.5); needs a token_budget
    with room for one."""
    archive: Literal["top_k", "last_of_slot"] = "top_k"
    """Which one: any of the task's best, or the last one that the same environment saw."""
    archive_size: int = 10
    """top_k: how many of the best are kept."""


@dataclass(frozen=True)
class PolicyConfig:
    """The language model that learns."""

    name: str = "tiny"
    """Name or folder of a causal language model."""
    dtype: str = "float32"
    """Type of the weights: float32 or bfloat16."""
    device: str = "auto"
    """cpu, cuda, or auto: the GPU if there is one."""
    threads: int = 1
    """Threads of the learner and the generator on a CPU."""


@dataclass(frozen=True)
class GenerationConfig:
    """How responses are sampled."""

    temperature: float = 1.0
    """Sampling temperature; the loss uses the same."""
    max_new_tokens: int = 256
    """Longest response, tokens."""
    batch_size: int = 0
    """Most responses sampled at once: their programs start before the next are sampled. 0 is all that may start."""
    top_k: int = 0
    """Draw from the most likely tokens only; 0 draws from all. Needs record."""
    top_p: float = 1.0
    """Draw from the smallest set of tokens with this probability only. Needs record."""
    record: int = 0
    """Candidates recorded with each drawn token and their log-probabilities, the likeliest first; -1 is the whole
    vocabulary."""

    def __post_init__(self) -> None:
        if self.batch_size < 0:
            raise ConfigError(f"generation.batch_size must not be negative, but is {self.batch_size}.")
        if self.top_k < 0:
            raise ConfigError(f"generation.top_k must not be negative, but is {self.top_k}.")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"generation.top_p must be in (0, 1], not {self.top_p}.")
        if self.record < -1:
            raise ConfigError(f"generation.record must be -1 or more, not {self.record}.")
        held = self.record == -1 or 0 < self.top_k <= self.record
        if self.truncated and not held:
            few = f" (or to at least {self.top_k})" if self.top_k else ""
            raise ConfigError(
                "With generation.top_k or generation.top_p the policy's probabilities must be taken over the tokens "
                f"that could be drawn, so these must be recorded: set generation.record to -1{few}."
            )

    @property
    def truncated(self) -> bool:
        """Whether some tokens cannot be drawn."""
        return self.top_k > 0 or self.top_p < 1


@dataclass(frozen=True)
class AdmissionConfig:
    """Which actions are in flight and which finished ones make a batch."""

    rule: Literal["oldest_first", "in_order", "race", "drop_stale"] = "oldest_first"
    """oldest_first and in_order drop nothing; race is Algorithm 1 of arXiv 2509.01684; drop_stale bounds each sample's
    age, for comparison."""
    lookahead: int = 1
    """oldest_first, in_order: batches started ahead of the policy; 0 follows the durations of the last programs."""
    lookahead_max: int = 8
    """oldest_first, in_order: the most that lookahead = 0 may choose; so many environments are made."""
    multiplier: float = 2.0
    """race, drop_stale: m, so that m * batch size actions are in flight."""
    leftovers: Literal["keep", "cancel"] = "keep"
    """race: what happens to the actions that lost; drop_stale: to those that run and are too old."""
    max_lag: int = 4
    """drop_stale: the oldest sample that is trained, in updates."""


@dataclass(frozen=True)
class WeightsConfig:
    """How much each sample counts in the policy loss."""

    rule: WeightRule = "duration"
    """duration: execution time over the batch's mean; inclusion: one over the probability not to be dropped; none: all
    the same."""
    measure: Literal["wall", "cpu"] = "wall"
    """duration: wall time, or the program's CPU time, so that sleeping gains nothing."""
    normalise: Literal["batch", "task_median"] = "batch"
    """duration: over the batch's mean, or first over the median of the task, so that slow tasks do not outweigh fast
    ones."""
    min_duration: float = 0.1
    """Floor of a duration, seconds."""
    cap: float | None = None
    """Largest weight."""


@dataclass(frozen=True)
class AlgorithmConfig:
    """The algorithm and its optimiser."""

    name: Annotated[str, tyro.conf.arg(aliases=["--algorithm"])] = "async_ppo"
    """A name in the entry-point group mle_gym.algorithms, or package.module:Class."""
    learning_rate: float = 1e-4
    """Step size of AdamW."""
    critic_learning_rate: float = 1e-3
    """Step size of the critic's AdamW, for algorithms that have one."""
    warmup: int = 0
    """Updates over which the step size rises; Adam's first steps are large however small the gradient is."""
    epochs: int = 1
    """Optimiser steps on each batch."""
    micro_batch: int = 16
    """Samples of similar length in one forward pass; 0 is the whole batch. The result does not depend on it."""
    max_grad_norm: float = 1.0
    """Gradients are scaled down to this norm."""
    options: Table = field(default_factory=dict)
    """The algorithm's own options."""


@dataclass(frozen=True)
class ExecutionConfig:
    """What happens to executions besides being run; each is in executions.sqlite before the trainer acts on it."""

    cache: bool = False
    """Answer a program that was executed before, on the same data, limits and seed, from the log, with the duration it
    had then; every program's $MLE_SEED is then the run's seed."""
    retries: int = 2
    """Further attempts after an infrastructure failure; then the sample is masked."""
    retry_pause: float = 1.0
    """Seconds before the first of them; it doubles each time."""
    failure_window: int = 100
    """The last so many executions ..."""
    failure_share: float = 0.5
    """... may have this share of masked ones; more stops the run. 1 never does."""

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise ConfigError(f"execution.retries must not be negative, but is {self.retries}.")
        if not 0 <= self.retry_pause < float("inf"):
            raise ConfigError(f"execution.retry_pause must be a number of seconds, 0 or more, not {self.retry_pause}.")
        if self.failure_window < 1:
            raise ConfigError(f"execution.failure_window must be above 0, not {self.failure_window}.")
        if not 0 <= self.failure_share <= 1:
            raise ConfigError(f"execution.failure_share must be in [0, 1], not {self.failure_share}.")


@dataclass(frozen=True)
class ScheduleConfig:
    """How long and in what steps."""

    updates: int = 100
    """Updates of the policy."""
    batch_size: int = 32
    """Samples in an update."""
    max_seconds: float | None = None
    """Wall time after which no further update starts."""
    checkpoint_every: int = 10
    """Updates between checkpoints."""
    patience: int = 0
    """Updates without a higher smoothed mean reward after which the run ends; 0 is never."""
    min_gain: float = 0.0
    """patience: the smoothed mean reward has to rise by more than this to count as higher."""
    smooth: int = 10
    """patience: updates whose mean reward is averaged."""
    evaluate: int = 64
    """Programs sampled to judge the final policy; 0 skips it."""
    max_failures: int = 20
    """Infrastructure failures in a row that stop the run."""
    stall_seconds: float = 600.0
    """A stage that makes no progress for so long stops the run; executions have the time limit of a program on top."""
    stall_warning: float | None = None
    """Seconds without progress after which a warning names the stage; by default a quarter of stall_seconds."""


@dataclass(frozen=True)
class TrainConfig:
    """A training run."""

    env: EnvConfig = EnvConfig()
    policy: PolicyConfig = PolicyConfig()
    generation: GenerationConfig = GenerationConfig()
    admission: AdmissionConfig = AdmissionConfig()
    weights: WeightsConfig = WeightsConfig()
    algorithm: AlgorithmConfig = AlgorithmConfig()
    execution: ExecutionConfig = ExecutionConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    run: str = ""
    """Folder of the run; by default runs/TASK-SEED-TIME."""
    seed: int = 0

    def __post_init__(self) -> None:
        positive = {
            "policy.threads": self.policy.threads,
            "generation.max_new_tokens": self.generation.max_new_tokens,
            "generation.temperature": self.generation.temperature,
            "weights.min_duration": self.weights.min_duration,
            "weights.cap": 1.0 if self.weights.cap is None else self.weights.cap,
            "algorithm.learning_rate": self.algorithm.learning_rate,
            "algorithm.critic_learning_rate": self.algorithm.critic_learning_rate,
            "algorithm.epochs": self.algorithm.epochs,
            "algorithm.max_grad_norm": self.algorithm.max_grad_norm,
            "schedule.updates": self.schedule.updates,
            "schedule.batch_size": self.schedule.batch_size,
            "schedule.smooth": self.schedule.smooth,
            "env.archive_size": self.env.archive_size,
            "schedule.max_seconds": 1.0 if self.schedule.max_seconds is None else self.schedule.max_seconds,
            "schedule.checkpoint_every": self.schedule.checkpoint_every,
            "schedule.max_failures": self.schedule.max_failures,
            "schedule.stall_seconds": self.schedule.stall_seconds,
            "schedule.stall_warning": 1.0 if self.schedule.stall_warning is None else self.schedule.stall_warning,
            "admission.lookahead_max": self.admission.lookahead_max,
        }
        for key, value in positive.items():
            if not value > 0:
                raise ConfigError(f"{key} must be above 0, not {value}.")
        not_negative = {
            "env.slots": self.env.slots,
            "admission.lookahead": self.admission.lookahead,
            "admission.max_lag": self.admission.max_lag,
            "algorithm.micro_batch": self.algorithm.micro_batch,
            "algorithm.warmup": self.algorithm.warmup,
            "schedule.evaluate": self.schedule.evaluate,
            "schedule.patience": self.schedule.patience,
            "schedule.min_gain": self.schedule.min_gain,
            "seed": self.seed,
        }
        for key, value in not_negative.items():
            if value < 0:
                raise ConfigError(f"{key} must not be negative, but is {value}.")
        if (self.schedule.stall_warning or 0.0) > self.schedule.stall_seconds:
            raise ConfigError(
                f"schedule.stall_warning={self.schedule.stall_warning} is later than the end that it warns of, "
                f"schedule.stall_seconds={self.schedule.stall_seconds}."
            )
        schedule = self.schedule
        if schedule.patience and schedule.smooth + schedule.patience > schedule.updates:
            raise ConfigError(
                f"schedule.patience={schedule.patience} can never end a run of {schedule.updates} updates, because the "
                f"mean over schedule.smooth={schedule.smooth} of them comes first; lower one or raise schedule.updates."
            )
        if self.env.archive != "top_k" and not self.env.improve:
            raise ConfigError(
                f"env.archive={self.env.archive!r} shows earlier programs, but env.improve is 0 and shows none; set "
                "env.improve, for example to 0.5."
            )
        if not 0 <= self.env.improve <= 1:
            raise ConfigError(f"env.improve must be in [0, 1], not {self.env.improve}.")
        if self.admission.multiplier < 1:
            raise ConfigError(f"admission.multiplier must be at least 1, not {self.admission.multiplier}.")
        for key, default in (("measure", "wall"), ("normalise", "batch")):
            value = getattr(self.weights, key)
            if value != default and self.weights.rule != "duration":
                raise ConfigError(
                    f"weights.{key} = {value!r} changes how durations are read, and weights.rule = "
                    f"{self.weights.rule!r} reads none; use rule = 'duration', or leave {key} out."
                )
        if self.policy.dtype not in ("float32", "bfloat16"):
            raise ConfigError(f"policy.dtype must be float32 or bfloat16, not {self.policy.dtype!r}.")

    def to_toml(self) -> str:
        """The whole configuration as a TOML file that reads back equal."""
        return to_toml(self)


def load_config(file: Path | None = None, overrides: Sequence[str] = ()) -> TrainConfig:
    """Read a TOML file and apply overrides of the form ``section.key=value``.

    Args:
        file: TOML file; None is all defaults.
        overrides: Values in TOML's syntax; a bare word is a string.

    Raises:
        ConfigError: The file is missing or malformed, a key is unknown, a value has the wrong type or is impossible.
    """
    values: dict[str, Any] = {}
    if file is not None:
        if not file.is_file():
            raise ConfigError(f"The configuration file {file} does not exist.")
        try:
            values = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file} is not a TOML file: {error}.") from error
    for override in overrides:
        _apply(values, override)
    try:
        return build(TrainConfig, values)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{error}" if file is None else f"{file}: {error}") from error


def _apply(values: dict[str, Any], override: str) -> None:
    """Set one value inside nested tables."""
    path, equals, text = override.partition("=")
    keys = [key.strip() for key in path.split(".")]
    if not equals or not all(keys):
        raise ConfigError(f"The override {override!r} must look like section.key=value.")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    table = values
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ConfigError(f"The override {override!r} goes into {key!r}, which is a value and not a section.")
    table[keys[-1]] = value
