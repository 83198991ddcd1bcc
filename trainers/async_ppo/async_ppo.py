"""Duration-aware asynchronous training, in the order of Algorithm 1 of arXiv 2509.01684."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.common.admission import Admission, AutoLookahead, DropStale, InOrder, OldestFirst, Race, Taken
from trainers.common.audit import Audit
from trainers.common.batch_metrics import batch_metrics
from trainers.common.config import TrainConfig
from trainers.common.convergence import Convergence
from trainers.common.failure_budget import FailureBudget
from trainers.common.inclusion import Inclusion
from trainers.common.judge import Judge
from trainers.common.learner import Learner
from trainers.common.progress import Progress
from trainers.common.rollout import Rollout
from trainers.common.run_folder import RunFolder
from trainers.common.sample import Sample
from trainers.common.stages import Stages
from trainers.common.throughput import Throughput

__all__ = ["AsyncTrainer", "make_admission", "stopwatch"]

POLL_SECONDS = 0.5
"""How often a wait looks at signals, the clock and the watchdog."""


class AsyncTrainer:
    """The loop. Programs run in the executor's slots while this thread generates and learns.

    Args:
        config: The run's configuration.
        rollout: Generates, sends, receives.
        admission: Decides what starts and what is trained.
        learner: Updates the policy.
        sync: Hands the learner's parameters, as this version, to the generator.
        judge: Says what is valid and better.
        folder: Where everything is written.
        stages: Stage clock and watchdog.
        core: Holds a core of the machine for a computation.
        progress: What the user sees.
        clock: Seconds since the run's start, over all its restarts.
        stopping: True when the user asked to stop.
    """

    def __init__(
        self,
        config: TrainConfig,
        rollout: Rollout,
        admission: Admission,
        learner: Learner,
        sync: Callable[[int], None],
        judge: Judge,
        folder: RunFolder,
        stages: Stages,
        core: Callable[[], AbstractContextManager[None]],
        progress: Progress,
        clock: Callable[[], float],
        stopping: Callable[[], bool],
    ) -> None:
        self.config = config
        self.rollout = rollout
        self.admission = admission
        self.learner = learner
        self.sync = sync
        self.judge = judge
        self.folder = folder
        self.stages = stages
        self.core = core
        self.progress = progress
        self.clock = clock
        self.stopping = stopping
        self.audit = Audit()
        self.inclusion = Inclusion(admission.safe_when)
        self.throughput = Throughput(config.env.slots)
        self.budget = FailureBudget(
            config.schedule.max_failures, config.execution.failure_window, config.execution.failure_share
        )
        """Counts what this process sees: failures on record were another day's."""
        schedule = config.schedule
        self.convergence = Convergence(schedule.patience, schedule.min_gain, schedule.smooth)
        self.best: dict[str, float] = {}
        """Best score of a valid sample, per task."""
        self._ran = 0.0
        self._programs: list[float] = []
        """Seconds of the valid programs since the last update."""
        self._window = (clock(), dict(stages.seconds), 0.0, admission.launched, False)

    def run(self) -> bool:
        """Train until the schedule ends.

        Returns:
            True when every update was made or the time is up; False when the user stopped it.

        Raises:
            InfrastructureFailed: The failure budget is spent.
            Stalled: A stage made no progress.
            FloatingPointError: The loss is not finite.
        """
        while not self.ending:
            if self.stopping():
                return False
            # Steps 1, 2 and 4: draw prompts, sample responses, hand the programs to the executors.
            self.launch()
            # Steps 3 and 5: wait until a batch of executions has completed.
            if not self.collect():
                return False
            batch, likely = self.take()
            # The executors get their next work before the learner takes its time.
            self.launch()
            # Steps 6 and 7: advantages, duration weights, the clipped loss.
            with self.computing("learn", f"update {self.admission.updates} on {len(batch)} samples"):
                learned = self.learner.update(batch, likely)
            self.audit.learn([sample.ticket for sample in batch], self.admission.updates, self.learner.treatment)
            # Step 9: later responses come from the new policy.
            self._settle(self.admission.advance())
            with self.stages("sync"):
                self.sync(self.admission.updates)
            self.report(batch, learned)
            if self.admission.updates % self.config.schedule.checkpoint_every == 0:
                self.checkpoint()
        return True

    @contextmanager
    def computing(self, stage: str, detail: str) -> Iterator[None]:
        """Time a stage that needs a core; the wait for one is a stage of its own."""
        with ExitStack() as stack:
            with self.stages("core", f"other processes hold the cores, and next is {detail}"):
                stack.enter_context(self.core())
            with self.stages(stage, detail):
                yield

    def launch(self) -> None:
        """Start as many actions as the admission rule wants and free environments allow."""
        most = self.config.generation.batch_size
        while (count := min(self.admission.wanted(), self.rollout.free)) > 0:
            count = min(count, most or count)
            self.progress.status(f"generating {count} programs")
            with self.computing("generate", f"{count} programs of policy version {self.admission.updates}"):
                tickets = self.rollout.launch(count)
            for ticket in tickets:
                self.admission.launch(ticket)
            self.audit.launch(tickets, self.admission.updates)
            self.inclusion.launch(tickets)
            if not most:
                return

    def collect(self) -> bool:
        """Wait for completions until a batch is ready; False when the user stopped."""
        while not self.admission.ready():
            if self.stopping():
                return False
            waiting, size = len(self.admission.waiting), self.admission.batch_size
            self.progress.status(f"executing: {waiting} of {size} finished, {self.rollout.in_flight} in flight")
            with self.stages("wait", self.rollout.waits_for()):
                samples = self.rollout.receive(POLL_SECONDS)
                while not samples and not self.stopping():
                    self.stages.check(self.rollout.waits_for())
                    samples = self.rollout.receive(POLL_SECONDS)
            for sample in samples:
                self._complete(sample)
            # Not before the whole group is accounted for: a checkpoint follows.
            self.budget.check()
            # A masked sample's place is free again.
            self.launch()
        return True

    def take(self) -> tuple[list[Sample], NDArray[np.float64]]:
        """The next batch, out of the admission rule's hands, and how likely each sample was not to be dropped."""
        taken = self.admission.take()
        likely = self.inclusion.probabilities(taken.batch, taken.dropped)
        self._settle(taken)
        return self.rollout.pop(taken.batch), likely

    def drain(self) -> None:
        """Cancel and collect what is in flight: nobody will train it."""
        self.progress.status(f"ending {self.rollout.in_flight} actions that nobody will train")
        self.rollout.cancel([*self.admission.running, *self.admission.late])
        with self.stages("wait"):
            while self.rollout.in_flight:
                samples = self.rollout.receive(POLL_SECONDS)
                if not samples:
                    self.stages.check(self.rollout.waits_for())
                for sample in samples:
                    self.stages.beat()
                    self.audit.settle([sample.ticket], "dropped")

    def report(self, batch: Sequence[Sample], learned: Mapping[str, float]) -> None:
        """Log one update."""
        version = self.admission.updates - 1
        metrics: dict[str, Any] = {
            "update": version,
            "seconds": self.clock(),
            **batch_metrics(batch, self.judge, version),
            **learned,
            **self._busy(),
            **self.throughput.metrics(),
            "in_flight": self.rollout.in_flight,
            "launched": self.admission.launched,
            "trained": self.admission.trained,
            "masked": self.admission.masked,
            "dropped": self.admission.dropped,
            "audit": self.audit.deciles(),
        }
        if len(self.config.env.ids) == 1:
            metrics["best_public_score"] = self.best.get(self.config.env.ids[0])
        self.convergence.update(metrics["reward_mean"])
        if self.config.schedule.patience:
            metrics["reward_smoothed"] = self.convergence.smoothed
        self.folder.log(metrics)
        self.folder.write("audit.json", self.audit.report())
        self.progress.update(metrics)

    def checkpoint(self) -> None:
        """Save everything that the continuation depends on."""
        self.progress.status("writing a checkpoint")
        with self.stages("checkpoint"):
            self.folder.sync()
            self.folder.checkpoints.save(self.admission.updates, self.learner.policy, self.state())

    def state(self) -> dict[str, Any]:
        """All state but the policy's weights and the global random generators."""
        return {
            "seconds": self.clock(),
            "best": self.best,
            "admission": self.admission.state(),
            "rollout": self.rollout.state(),
            "learner": self.learner.state(),
            "audit": self.audit.state(),
            "convergence": self.convergence.state(),
            "inclusion": self.inclusion.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``; the policy has been loaded already."""
        self.best = dict(state["best"])
        self.admission.restore(state["admission"])
        self.learner.restore(state["learner"])
        self.audit.restore(state["audit"])
        self.convergence.restore(state["convergence"])
        if "inclusion" in state:
            self.inclusion.restore(state["inclusion"])
        self.sync(self.admission.updates)
        self.rollout.restore(state["rollout"])
        if self.config.admission.leftovers == "cancel":
            self.rollout.cancel(sorted(self.admission.late))

    @property
    def ending(self) -> str:
        """What ends the run now: ``updates``, ``converged`` or ``max_seconds``; "" while it is to go on."""
        limit = self.config.schedule.max_seconds
        if self.admission.updates >= self.config.schedule.updates:
            return "updates"
        if self.convergence.reached:
            return "converged"
        return "max_seconds" if limit is not None and self.clock() >= limit else ""

    def _settle(self, taken: Taken) -> None:
        """Write down what became of tickets, and let go of what was dropped."""
        self.audit.settle(taken.batch, "trained")
        self.audit.settle(taken.dropped, "dropped")
        self.inclusion.settle(taken.batch, taken.dropped)
        self.rollout.cancel(taken.dropped_running)
        self.rollout.pop(taken.dropped_waiting)

    def _complete(self, sample: Sample) -> None:
        self.stages.beat()
        self._ran += 0.0 if sample.cached else sample.duration
        if sample.reward_valid and not sample.cached:
            self._programs.append(sample.duration)
        lost = sample.ticket in self.admission.late
        kept = self.admission.complete(sample.ticket, valid=sample.reward_valid, duration=sample.duration)
        self.inclusion.finish(sample.ticket, sample.generated, sample.ended, valid=sample.reward_valid)
        if kept:
            self.audit.finish(sample.ticket, sample.duration, "waiting")
        else:
            self.rollout.pop([sample.ticket])
            # A loser of the race that was cancelled is no failure of the machine: the audit is there to show it.
            fate = "dropped" if lost or sample.reward_valid else "masked"
            self.audit.finish(sample.ticket, sample.duration, fate, cut=not sample.reward_valid)
        if sample.outcome != "cancelled" and not self.rollout.replaying:
            self.budget.add(masked=not sample.reward_valid, message=str(sample.info.get("message") or ""))
        if sample.reward_valid:
            self._keep_best(sample)

    def _keep_best(self, sample: Sample) -> None:
        if not self.judge.valid(sample.task, sample.info):
            return
        gain = self.judge.gain(sample.task, sample.info.get("score"))
        if sample.task not in self.best or gain > self.judge.gain(sample.task, self.best[sample.task]):
            self.best[sample.task] = float(sample.info["score"])  # type: ignore[arg-type]
            # A replayed sample may be worse than one that a killed part of the run found after the checkpoint.
            kept = self.folder.best(sample.task)
            if kept is None or gain > self.judge.gain(sample.task, kept["score"]):
                self.folder.keep_best(sample)

    def _busy(self) -> dict[str, float]:
        """Shares of the time since the last update."""
        then, seconds, ran, launched, replaying = self._window
        now, current = self.clock(), dict(self.stages.seconds)
        self._window = (now, current, self._ran, self.admission.launched, self.rollout.replaying)
        wall = max(1e-9, now - then)
        spent = {name: current.get(name, 0.0) - seconds.get(name, 0.0) for name in ("generate", "learn", "wait")}
        # What is repeated from the record takes no time, so it says nothing about speed.
        if not replaying and not self.rollout.replaying:
            self.throughput.add(
                wall=wall,
                programs=len(self._programs),
                program_seconds=sum(self._programs),
                generated=self.admission.launched - launched,
                generate_seconds=spent["generate"],
                trained=self.admission.batch_size,
                learn_seconds=spent["learn"],
            )
        self._programs.clear()
        return {
            "busy_generator": spent["generate"] / wall,
            "busy_learner": spent["learn"] / wall,
            "waiting_share": spent["wait"] / wall,
            "busy_executors": (self._ran - ran) / (wall * self.config.env.slots),
            "update_seconds": wall,
            "learn_seconds": spent["learn"],
            "generate_seconds": spent["generate"],
        }


def make_admission(config: TrainConfig) -> Admission:
    """The admission rule that a configuration names."""
    chosen, size = config.admission, config.schedule.batch_size
    if chosen.rule == "race":
        return Race(size, chosen.multiplier, chosen.leftovers)
    if chosen.rule == "drop_stale":
        return DropStale(size, chosen.multiplier, chosen.max_lag, chosen.leftovers)
    auto = None
    if chosen.lookahead == 0:
        # In order, the learner waits for nearly the slowest of all; oldest first, it takes whatever has finished.
        quantile = 0.99 if chosen.rule == "in_order" else 0.95
        auto = AutoLookahead(max(1, config.env.slots), size, quantile=quantile, most=chosen.lookahead_max)
    gate = InOrder if chosen.rule == "in_order" else OldestFirst
    return gate(size, chosen.lookahead, config.schedule.updates, auto)


def stopwatch(start: float = 0.0) -> Callable[[], float]:
    """A clock that counts on from ``start`` seconds."""
    zero = time.monotonic() - start
    return lambda: time.monotonic() - zero
