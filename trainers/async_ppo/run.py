"""Builds a training run from its configuration, and takes it from start or checkpoint to its summary."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from transformers.utils.logging import disable_progress_bar

import mle_gym
from mle_gym.commands.base import UserError
from mle_gym.sandbox.cores import available_cores
from trainers.async_ppo.async_ppo import AsyncTrainer, make_admission, stopwatch
from trainers.common.algorithm import Algorithm, AlgorithmNotFound, find_algorithm
from trainers.common.checkpoint import Checkpoints, restore_random
from trainers.common.comparison import comparison
from trainers.common.config import ConfigError, TrainConfig
from trainers.common.durable import Durable
from trainers.common.environments import Environments
from trainers.common.evaluate import evaluate
from trainers.common.executor import Executor
from trainers.common.failure_budget import InfrastructureFailed
from trainers.common.judge import Judge
from trainers.common.learner import Learner
from trainers.common.load_model import PolicyUnavailable
from trainers.common.own_core import OwnCore
from trainers.common.policy import Policy
from trainers.common.progress import Progress, make_progress
from trainers.common.recorder import Recorder
from trainers.common.replay import Diverged, Replay
from trainers.common.rollout import Rollout
from trainers.common.run_folder import RunFolder
from trainers.common.schema import build
from trainers.common.stages import Stages, Stalled
from trainers.common.summary import summarise
from trainers.common.transformers_generator import TransformersGenerator

__all__ = ["RunFailed", "run_training"]


def run_training(config: TrainConfig, resume: Path | None = None) -> int:
    """Train, evaluate, summarise.

    Args:
        config: The configuration; ignored in favour of the run's own when resuming.
        resume: Folder of a run to continue from its last checkpoint.

    Returns:
        Exit code: 0, or 128 + signal number when a signal stopped the run.

    Raises:
        ConfigError: Something asked for does not exist or cannot be had.
        RunFailed: Executions failed, a stage made no progress, or the loss is not finite.
    """
    folder: RunFolder | None = None
    if resume is not None:
        folder, config = RunFolder.open(resume)
    try:
        # Everything that can be asked wrongly is built before the run folder is.
        _environments(config).check()
        path = Path(config.run or _default_run(config))
        if folder is None:
            RunFolder.check_new(path)
        algorithm = _algorithm(config)
        disable_progress_bar()
        start = _load_policy(config.policy.name, config)
        if folder is None:
            folder = RunFolder.create(path, _absolute(config))
        while True:
            try:
                return _Run(config, folder, algorithm, start).run()
            except Diverged as difference:
                # The record is of another machine or version: what it promised cannot be repeated.
                print(f"{difference} The recorded rest moves to lost.jsonl and is made anew.", flush=True)
                algorithm, start = _algorithm(config), _load_policy(config.policy.name, config)
            except (InfrastructureFailed, Stalled, FloatingPointError) as error:
                raise RunFailed(error, folder.path) from error
    finally:
        if folder is not None:
            folder.close()


class RunFailed(UserError):
    """The run ended before its time; the message says why and how to go on.

    Args:
        reason: What ended it. It decides the exit code: 75 when the infrastructure failed, 70 when a stage made no
            progress, else 2.
        run: Its folder.
    """

    def __init__(self, reason: Exception, run: Path) -> None:
        super().__init__(f"{reason} Continue with --resume {run}.")
        if isinstance(reason, InfrastructureFailed | Stalled):
            self.code = Stages.EXIT_CODE if isinstance(reason, Stalled) else 75


class _Stopped(Exception):
    """A signal came during the evaluation."""


class _Run:
    """One process's part of a run."""

    def __init__(self, config: TrainConfig, folder: RunFolder, algorithm: Algorithm, start: Policy) -> None:
        self.config = config = _with_slots(config)
        self.folder = folder
        self.signal = 0
        seed_everything(config.seed)
        torch.set_num_threads(config.policy.threads)
        checkpoint = folder.checkpoints.latest()
        self.policy = start if checkpoint is None else _load_policy(str(checkpoint / "policy"), config)
        reference = start.frozen_copy() if algorithm.needs_reference else None
        self.generator = _generator(self.policy, config)
        self.learner = Learner(self.policy, algorithm, config.algorithm, config.weights, reference)
        self.state = None if checkpoint is None else Checkpoints.load(checkpoint)

    def run(self) -> int:
        """Train to the end or to a signal."""
        config, folder = self.config, self.folder
        admission = make_admission(config)
        ids = [env_id for env_id in dict.fromkeys(config.env.ids) for _ in range(admission.in_flight_max)]
        judge = Judge(config.env.ids, config.env.kwargs)
        log = folder.open_executions()
        recorded = folder.recorded_groups(0 if self.state is None else self.state["rollout"]["received"])
        clock = stopwatch(max(self._seconds(), log.last_ended))
        recorder = Recorder(log, folder.path / "submissions", clock, cache=config.execution.cache)
        title = f"{', '.join(config.env.ids)} (seed {config.seed})"
        with contextlib.ExitStack() as stack:
            environments = _environments(config)
            pool = mle_gym.EnvPool(
                environments.factories(admission.in_flight_max, recorder.wrap),
                config.env.slots,
            )
            chosen = config.execution
            durable = Durable(
                pool,
                recorder,
                ids,
                retries=chosen.retries,
                pause=chosen.retry_pause,
                restarted=len(log) > 0,
                known=[record["ticket"] for record in folder.samples.read()],
            )
            stack.callback(durable.close)
            longest = environments.time_limit(pool.envs)
            stages = Stages(
                config.schedule.stall_seconds,
                folder.path,
                warning=config.schedule.stall_warning,
                patience={"wait": longest, "evaluate": longest},
            )
            progress = stack.enter_context(make_progress(title))
            stack.enter_context(self._signals())
            core: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
            if environments.pinned:
                core = OwnCore(config.env.slots)
                stack.callback(core.close)
            stages.watch()
            stack.callback(stages.close)
            executor: Executor = Replay(recorded, durable) if recorded else durable
            rollout = Rollout(
                executor, ids, self.generator, config.generation, config.seed, folder.samples, folder.prompts, clock
            )
            trainer = AsyncTrainer(
                config,
                rollout,
                admission,
                self.learner,
                self.generator.sync,
                judge,
                folder,
                stages,
                core,
                progress,
                clock,
                lambda: self.signal != 0,
            )
            rollout.reset()
            environments.remember(folder.samples.read())
            if self.state is not None:
                restore_random(self.state["random"])
                trainer.restore(self.state)
            folder.rewind(admission.updates)
            if self.state is not None:
                progress.say(
                    f"Continuing after {admission.updates} updates; {len(recorded)} recorded groups are repeated first."
                )
            try:
                done = trainer.run()
            except Diverged:
                folder.cut(rollout.received, admission.updates)
                raise
            except (InfrastructureFailed, Stalled):
                trainer.checkpoint()
                raise
            trainer.checkpoint()
            if trainer.ending == "converged":
                progress.say(f"Converged after {admission.updates} updates: the smoothed mean reward rises no more.")
            if not done:
                progress.say(f"Stopped after {admission.updates} updates. Continue with --resume {folder.path}")
                return 128 + self.signal
            self.policy.save(folder.path / "policy")
            trainer.drain()
            tables: dict[str, dict[str, Any]] = {}
            if config.schedule.evaluate:
                try:
                    with stages("evaluate"):
                        tables = self._evaluate(rollout, judge, stages, progress)
                except _Stopped:
                    progress.say(f"Trained, but not evaluated. Continue with --resume {folder.path}")
                    return 128 + self.signal
            summary = summarise(folder, judge, config, admission.updates, clock(), tables)
            folder.write("summary.json", {**summary, "ended": trainer.ending})
            progress.say(f"Done: {folder.path / 'summary.json'}")
        if tables:
            _print_comparison(tables["before"], tables["after"])
        return 0

    def _evaluate(
        self, rollout: Rollout, judge: Judge, stages: Stages, progress: Progress
    ) -> dict[str, dict[str, Any]]:
        """Judge the start policy and the trained one; every executed program goes to ``evaluation.json``."""

        def look() -> None:
            if self.signal:
                raise _Stopped
            stages.check("no evaluated program ends")

        def beat() -> None:
            look()
            stages.beat()

        tables, trials = {}, {}
        start = _generator(_load_policy(self.config.policy.name, self.config), self.config)
        for name, generator in (("before", start), ("after", self.generator)):
            progress.status(f"judging the policy {name} training")
            tables[name], trials[name] = evaluate(
                rollout.executor,
                rollout.tasks,
                rollout.first_prompts,
                generator,
                judge,
                samples=self.config.schedule.evaluate,
                max_new_tokens=self.config.generation.max_new_tokens,
                seed=self.config.seed,
                beat=beat,
                poll=look,
            )
        self.folder.write("evaluation.json", {"tables": tables, "trials": trials})
        return tables

    def _seconds(self) -> float:
        """Run time before this process: up to the checkpoint, or to the last completion on record."""
        saved = 0.0 if self.state is None else float(self.state["seconds"])
        return max([saved, *(float(record["ended"]) for record in self.folder.samples.read())])

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """The first SIGINT or SIGTERM asks the loop to stop; the second one acts at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        old = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def stop(number: int, frame: FrameType | None) -> None:
            self.signal = number
            for each, handler in old.items():
                signal.signal(each, handler)

        for number in old:
            signal.signal(number, stop)
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)


def _print_comparison(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    console = Console()
    for task in after:
        table = Table(title=task)
        for name in ("", "before", "after"):
            table.add_column(name, justify="right" if name else "left")
        for row in comparison(before, after, task):
            table.add_row(*row)
        console.print(table)


def _environments(config: TrainConfig) -> Environments:
    seed = config.seed if config.execution.cache else None
    return Environments(config.env, program_seed=seed, base_model=config.policy.name)


def seed_everything(seed: int) -> None:
    """Seed the global generators of python, numpy and torch."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def _algorithm(config: TrainConfig) -> Algorithm:
    try:
        kind = find_algorithm(config.algorithm.name)
        algorithm = kind(build(kind.Options, config.algorithm.options, "algorithm.options"))
        algorithm.check(config)
        return algorithm
    except (AlgorithmNotFound, TypeError, ValueError) as error:
        raise ConfigError(str(error)) from error


def _generator(policy: Policy, config: TrainConfig) -> TransformersGenerator:
    drawn = config.generation
    return TransformersGenerator(policy, record=drawn.record, top_k=drawn.top_k, top_p=drawn.top_p)


def _load_policy(name: str, config: TrainConfig) -> Policy:
    device = config.policy.device
    if device != "auto" and device.partition(":")[0] not in ("cpu", "cuda"):
        raise ConfigError(f"policy.device must be auto, cpu, cuda or cuda:N, not {device!r}.")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"policy.device is {device!r}, but torch sees no GPU; use auto or cpu.")
    try:
        return Policy.load(name, dtype=config.policy.dtype, device=device)
    except PolicyUnavailable as error:
        raise ConfigError(str(error)) from error


def _with_slots(config: TrainConfig) -> TrainConfig:
    """The configuration with the number of slots that suits this machine, where it leaves that open."""
    if config.env.slots:
        return config
    cores = len(available_cores())
    # On two cores the learner borrows one when it computes: a core kept for it would be idle most of the time.
    slots = cores if cores <= 2 else cores - 1
    return dataclasses.replace(config, env=dataclasses.replace(config.env, slots=slots))


def _absolute(config: TrainConfig) -> TrainConfig:
    """The same configuration for a process that resumes it from another folder."""
    name = Path(config.policy.name).expanduser()
    if not name.exists():
        return config
    return dataclasses.replace(config, policy=dataclasses.replace(config.policy, name=str(name.resolve())))


def _default_run(config: TrainConfig) -> str:
    task = config.env.ids[0].rpartition("/")[2]
    return f"runs/{task}-{config.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
