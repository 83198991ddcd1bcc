"""From free environments to finished samples: generate, send, receive, record."""

from __future__ import annotations

import math
import time
import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mle_gym.pool import StepResult
from trainers.common.action import Action
from trainers.common.candidates import Candidates
from trainers.common.config import GenerationConfig
from trainers.common.executor import Executor
from trainers.common.generator import Generator
from trainers.common.jsonlines import JsonLines, plain
from trainers.common.sample import Generation, Sample

__all__ = ["Rollout"]


@dataclass(frozen=True, slots=True)
class _Flight:
    """An action on its way."""

    ticket: int
    env_index: int
    generation: Generation
    queued: float
    generated: float


class Rollout:
    """Keeps actions in flight and turns completions into samples.

    Tickets are numbers of the run, in order of launch, and survive a restart; the executor's own tickets do not.
    Every completion is recorded in ``samples.jsonl`` before anybody sees it, with the group in which it was received,
    so that a run can be repeated from its record (:class:`trainers.common.replay.Replay`).

    Args:
        executor: Environments.
        tasks: Environment id of each of the executor's environments; launches rotate over the ids, however long each
            takes, so that no task is sampled more because it is fast.
        generator: Writes the actions.
        config: Temperature and length.
        seed: The run's seed; generation is a function of it and of the ticket.
        samples: Record of completions.
        prompts: Record of each prompt, once.
        clock: Seconds since the run's start.
    """

    def __init__(
        self,
        executor: Executor,
        tasks: Sequence[str],
        generator: Generator,
        config: GenerationConfig,
        seed: int,
        samples: JsonLines,
        prompts: JsonLines,
        clock: Callable[[], float],
    ) -> None:
        self.executor = executor
        self.tasks = tuple(tasks)
        self.generator = generator
        self.config = config
        self.seed = seed
        self.finished: dict[int, Sample] = {}
        """Samples that wait to be taken, by ticket."""
        self.received = 0
        """Groups of completions received."""
        self.first_prompts: dict[str, str] = {}
        """Task -> what its first environment showed at the reset: nothing had been tried yet."""
        self._samples = samples
        self._prompts = prompts
        self._clock = clock
        self._recorded = 1 + max((record["recv"] for record in samples.read()), default=-1)
        self._known = {(record["task"], record["group"]) for record in prompts.read()}
        self._launched = 0
        self._flights: dict[int, _Flight] = {}
        self._tickets: dict[int, int] = {}
        self._shown: list[str] = []
        self._turn = 0
        self._free: dict[str, deque[int]] = {}
        for index, task in enumerate(self.tasks):
            self._free.setdefault(task, deque()).append(index)

    @property
    def in_flight(self) -> int:
        """Actions sent and not received."""
        return len(self._flights)

    @property
    def replaying(self) -> bool:
        """True while the group received last was on record already."""
        return self.received <= self._recorded

    @property
    def free(self) -> int:
        """Environments without an action."""
        return sum(len(envs) for envs in self._free.values())

    def reset(self) -> None:
        """Start an episode in every environment."""
        self._shown = [str(result.next_obs) for result in self.executor.reset(seed=self.seed)]
        if len(self._shown) != len(self.tasks):
            raise ValueError(f"{len(self._shown)} environments for {len(self.tasks)} tasks.")
        self.first_prompts = dict(zip(reversed(self.tasks), reversed(self._shown), strict=True))

    def launch(self, count: int) -> list[int]:
        """Sample ``count`` responses from the generator's policy and send them; returns their tickets."""
        if count < 1:
            return []
        envs = [self._next_env() for _ in range(count)]
        queued = self._clock()
        seed = int(np.random.SeedSequence([self.seed, self._launched]).generate_state(1)[0])
        generations = self.generator.generate(
            [self._shown[env] for env in envs],
            temperature=self.config.temperature,
            max_new_tokens=self.config.max_new_tokens,
            seed=seed,
        )
        generated = self._clock()
        flights = [
            _Flight(self._launched + offset, env, generation, queued, generated)
            for offset, (env, generation) in enumerate(zip(envs, generations, strict=True))
        ]
        self._launched += count
        for flight in flights:
            self._send(flight)
        return [flight.ticket for flight in flights]

    def receive(self, timeout: float) -> list[Sample]:
        """Finished samples in order of completion, at least one unless ``timeout`` seconds pass."""
        results = self.executor.recv(1, timeout)
        if not results:
            return []
        now = self._clock()
        since = now - time.monotonic()
        samples, records = [], []
        for result in results:
            flight = self._flights.pop(self._tickets.pop(result.ticket))
            sample = self._sample(flight, result, now, since)
            records.append(self._record(sample, flight, result, len(results)))
            samples.append(sample)
            self.finished[sample.ticket] = sample
            self._shown[flight.env_index] = str(result.next_obs)
            self._free[self.tasks[flight.env_index]].append(flight.env_index)
        # A replayed completion is on record already.
        if self.received >= self._recorded:
            self._samples.append(records)
        self.received += 1
        return samples

    def waits_for(self) -> str:
        """What is in flight, in words."""
        oldest = min(self._flights.values(), key=lambda flight: flight.generated, default=None)
        if oldest is None:
            return "nothing is in flight"
        sent = self._clock() - oldest.generated
        return (
            f"{self.in_flight} executions are in flight and none ends; the oldest, ticket {oldest.ticket} of "
            f"{self.tasks[oldest.env_index]}, was sent {sent:.0f} s ago"
        )

    def pop(self, tickets: Sequence[int]) -> list[Sample]:
        """Take finished samples out."""
        return [self.finished.pop(ticket) for ticket in tickets]

    def cancel(self, tickets: Sequence[int]) -> None:
        """End actions whose results nobody wants, where the executor can; their completions still arrive."""
        cancel = getattr(self.executor, "cancel", None)
        wanted = set(tickets)
        if cancel is not None:
            for theirs, ours in list(self._tickets.items()):
                if ours in wanted:
                    cancel(theirs)

    def state(self) -> dict[str, Any]:
        """JSON-able state: every action in flight, in full, so that it can be executed again."""
        return {
            "launched": self._launched,
            "received": self.received,
            "turn": self._turn,
            "shown": self._shown,
            "free": {task: list(envs) for task, envs in self._free.items()},
            "flights": [asdict(flight) for flight in self._flights.values()],
            "finished": [asdict(sample) for sample in self.finished.values()],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``: what was in flight is sent again, in order of launch."""
        self._launched, self.received, self._turn = state["launched"], state["received"], state["turn"]
        self._shown = list(state["shown"])
        self._free = {task: deque(envs) for task, envs in state["free"].items()}
        self.finished = {}
        for values in state["finished"]:
            sample = Sample(**{**values, "generation": _generation(values["generation"])})
            self.finished[sample.ticket] = sample
        self._flights, self._tickets = {}, {}
        for values in state["flights"]:
            self._send(_Flight(**{**values, "generation": _generation(values["generation"])}))

    def _next_env(self) -> int:
        names = list(self._free)
        for _ in names:
            task = names[self._turn % len(names)]
            self._turn += 1
            if self._free[task]:
                return self._free[task].popleft()
        raise RuntimeError(f"All {len(self.tasks)} environments are busy.")

    def _send(self, flight: _Flight) -> None:
        self._flights[flight.ticket] = flight
        action = Action(flight.generation.text, flight.ticket, queued=flight.queued, generated=flight.generated)
        self._tickets[self.executor.send(flight.env_index, action)] = flight.ticket

    def _sample(self, flight: _Flight, result: StepResult, now: float, since: float) -> Sample:
        info = plain(dict(result.info))
        duration = float(info.get("duration") or 0.0)
        # A pool stamps the end itself, because the trainer may look late.
        ended = now if math.isnan(result.ended) else max(flight.generated, result.ended + since)
        started = max(flight.generated, ended - float(info.get("grade_time") or 0.0) - duration)
        origin = info.get("execution") or {}
        task = self.tasks[flight.env_index]
        group = zlib.crc32(flight.generation.prompt.encode("utf-8", errors="replace"))
        if (task, group) not in self._known:
            self._known.add((task, group))
            self._prompts.append([{"task": task, "group": group, "prompt": flight.generation.prompt}])
        stamps = {"queued": flight.queued, "generated": flight.generated, "started": started, "ended": ended}
        if origin.get("attached"):
            # All of it was before a restart, in an earlier process of this run.
            stamps = {name: float(origin[name]) for name in stamps}
        # A repeated completion keeps its stamps: what is computed from them repeats itself, too.
        if hasattr(self.executor, "stamps"):
            stamps |= self.executor.stamps(result.ticket)
        return Sample(
            ticket=flight.ticket,
            generation=flight.generation,
            task=task,
            group=group,
            reward=float(result.reward),
            reward_valid=bool(info.get("reward_valid", True)),
            duration=duration,
            outcome=str(info.get("outcome", "")),
            **stamps,
            info=info,
            cached=bool(origin.get("cached")),
        )

    def _record(self, sample: Sample, flight: _Flight, result: StepResult, size: int) -> dict[str, Any]:
        return {
            "ticket": sample.ticket,
            "task": sample.task,
            "group": sample.group,
            "version": sample.version,
            "reward": sample.reward,
            "reward_valid": sample.reward_valid,
            "duration": sample.duration,
            "outcome": sample.outcome,
            "cached": sample.cached,
            "queued": sample.queued,
            "generated": sample.generated,
            "started": sample.started,
            "ended": sample.ended,
            "tokens": len(sample.generation.response_ids),
            "finished": sample.generation.finished,
            "response": sample.generation.text,
            "info": sample.info,
            "env": flight.env_index,
            "recv": self.received,
            "received": size,
            "terminated": bool(result.terminated),
            "truncated": bool(result.truncated),
            "next_obs": str(result.next_obs),
        }


def _generation(values: Mapping[str, Any]) -> Generation:
    lists = ("prompt_ids", "response_ids", "logprobs", "versions")
    candidates = values.get("candidates")
    made = None if candidates is None else Candidates(**candidates)
    return Generation(**{**values, **{name: tuple(values[name]) for name in lists}, "candidates": made})
