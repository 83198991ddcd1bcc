"""A bandit of token sequences under a simulated clock, with the trainer's own admission rules and weights.

Only the clock and the programs are simulated. Which actions start, which make a batch, which are dropped and what each
sample weighs is decided by the code that trains.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trainers.common.admission import Admission, Taken
from trainers.common.inclusion import Inclusion
from trainers.common.sample import Generation, Sample

__all__ = ["Batch", "Kind", "Simulation", "TokenPolicy"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Kind:
    """What the first token of an action decides; the second one stretches or shrinks it."""

    name: str
    probability: float
    reward: float
    seconds: float
    """Mean wall time."""
    cpu: float | None = None
    """CPU seconds; None: the wall time."""


STRETCH = (0.8, 1.0, 1.25)
"""What the second token makes of the seconds."""
_GAIN = (-0.05, 0.0, 0.05)
"""And of the reward."""
_SIGMA = 0.25
"""Of the logarithm of a duration."""


class TokenPolicy:
    """Two tokens, the second given the first: small enough that every action can be enumerated.

    Args:
        kinds: What the first token may be.
    """

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        self.kinds = kinds
        self.first: Floats = np.log([kind.probability for kind in kinds])
        """[K] logits of the first token."""
        self.second: Floats = np.zeros((len(kinds), len(STRETCH)))
        """[K, 3] logits of the second token; replace the arrays, do not write into them."""
        self._known: tuple[Floats, Floats, Floats, Floats] | None = None

    def probabilities(self) -> tuple[Floats, Floats]:
        """Probabilities of the first token [K], and of the second one given it [K, 3]."""
        if self._known is None or self._known[0] is not self.first or self._known[1] is not self.second:
            self._known = (self.first, self.second, _softmax(self.first), _softmax(self.second))
        return self._known[2], self._known[3]

    def sample(self, rng: np.random.Generator) -> tuple[int, int]:
        """Draw an action."""
        one, two = self.probabilities()
        kind = int(rng.choice(len(one), p=one))
        return kind, int(rng.choice(len(STRETCH), p=two[kind]))

    def logprobs(self, action: tuple[int, int]) -> tuple[float, float]:
        """Log-probabilities of an action's tokens."""
        one, two = self.probabilities()
        return float(np.log(one[action[0]])), float(np.log(two[action]))

    def reward(self, action: tuple[int, int]) -> float:
        """Reward of an action; it is not random."""
        return self.kinds[action[0]].reward + _GAIN[action[1]]

    def scores(self) -> Floats:
        """Gradient of the log-probability of every action by all logits, [K, 3, 4 K]."""
        one, two = self.probabilities()
        count = len(one)
        result = np.zeros((count, len(STRETCH), count + two.size))
        for kind in range(count):
            for other in range(len(STRETCH)):
                result[kind, other, :count] = np.eye(count)[kind] - one
                block = slice(count + kind * len(STRETCH), count + (kind + 1) * len(STRETCH))
                result[kind, other, block] = np.eye(len(STRETCH))[other] - two[kind]
        return result

    def exact_gradient(self) -> Floats:
        """Gradient of the expected reward by all logits, by enumeration, [4 K]."""
        one, two = self.probabilities()
        joint = one[:, None] * two
        rewards = np.array([[self.reward((k, s)) for s in range(len(STRETCH))] for k in range(len(one))])
        return np.asarray(np.einsum("ks,ks,ksp->p", joint, rewards, self.scores()))


@dataclass(frozen=True)
class Batch:
    """What an update gets."""

    samples: list[Sample]
    kinds: NDArray[np.int64]
    """[B]"""
    actions: list[tuple[int, int]]
    likely: Floats
    """[B] probability not to be dropped, as the trainer estimates it."""
    time: float
    """Simulated seconds."""
    lags: NDArray[np.int64]
    """[B] updates."""


@dataclass
class Simulation:
    """Runs a policy under an admission rule; events happen at exact times.

    Args:
        rule: A fresh rule.
        policy: May be changed between batches.
        slots: Programs that run at once.
        seed: Of actions and durations.
        pause: Seconds between a batch and the update it makes, in which programs go on running.
    """

    rule: Admission
    policy: TokenPolicy
    slots: int
    seed: int
    pause: float = 0.0
    clock: float = 0.0
    busy: float = 0.0
    """Seconds inside programs, the last ones of each slot included."""
    launched: dict[int, tuple[int, float]] = field(default_factory=dict)
    """Ticket -> kind and true duration."""
    trained: set[int] = field(default_factory=set)
    dropped: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.inclusion = Inclusion(self.rule.safe_when, window=2048)
        self._queue: deque[int] = deque()
        self._ends: list[tuple[float, int]] = []
        self._started: dict[int, float] = {}
        self._cancelled: set[int] = set()
        self._facts: dict[int, tuple[tuple[int, int], tuple[float, float], int, float, float]] = {}
        self._finished: dict[int, float] = {}

    def batches(self, updates: int, update: Callable[[Batch], None] = lambda batch: None) -> Iterator[Batch]:
        """Yield batches, and let ``update`` change the policy before the next version starts."""
        for _ in range(updates):
            self._launch()
            while not self.rule.ready():
                self._step()
                self._launch()
            taken = self.rule.take()
            likely = self.inclusion.probabilities(taken.batch, taken.dropped)
            batch = self._batch(taken, likely)
            self._settle(taken)
            self._launch()
            update(batch)
            until = self.clock + self.pause
            while self._ends and self._ends[0][0] <= until:
                self._step()
            self.clock = until
            self._settle(self.rule.advance())
            yield batch

    def _launch(self) -> None:
        # As many as there are environments: what was dropped and runs on holds one.
        free = self.rule.in_flight_max - len(self.rule.running) - len(self.rule.waiting) - len(self.rule.late)
        for _ in range(min(self.rule.wanted(), free)):
            ticket = len(self.launched)
            action = self.policy.sample(self.rng)
            kind = self.policy.kinds[action[0]]
            factor = STRETCH[action[1]] * float(np.exp(_SIGMA * self.rng.normal() - _SIGMA**2 / 2))
            seconds = kind.seconds * factor
            cpu = seconds if kind.cpu is None else kind.cpu * factor
            self.rule.launch(ticket)
            self.inclusion.launch([ticket])
            self.launched[ticket] = (action[0], seconds)
            self._facts[ticket] = (action, self.policy.logprobs(action), self.rule.updates, cpu, self.clock)
            self._queue.append(ticket)
        self._start()

    def _start(self) -> None:
        while self._queue and len(self._started) < self.slots:
            ticket = self._queue.popleft()
            self._started[ticket] = self.clock
            heapq.heappush(self._ends, (self.clock + self.launched[ticket][1], ticket))

    def _step(self) -> None:
        """The next program ends."""
        self.clock, ticket = heapq.heappop(self._ends)
        self._end(ticket, valid=True)

    def _end(self, ticket: int, *, valid: bool) -> None:
        started = self._started.pop(ticket, self.clock)
        self.busy += self.clock - started
        self._finished[ticket] = self.clock
        kept = self.rule.complete(ticket, valid=valid, duration=self.clock - started)
        self.inclusion.finish(ticket, self._facts[ticket][4], self.clock, valid=valid)
        if not kept:
            self._facts.pop(ticket)
        self._start()

    def _settle(self, taken: Taken) -> None:
        self.trained |= set(taken.batch)
        self.dropped |= set(taken.dropped)
        self.inclusion.settle(taken.batch, taken.dropped)
        for ticket in taken.dropped_waiting:
            del self._facts[ticket]
        gone = set(taken.dropped_running)
        if gone:
            self._ends = [event for event in self._ends if event[1] not in gone]
            heapq.heapify(self._ends)
            self._queue = deque(ticket for ticket in self._queue if ticket not in gone)
            for ticket in taken.dropped_running:
                self._end(ticket, valid=False)

    def _batch(self, taken: Taken, likely: Floats) -> Batch:
        samples, actions, lags = [], [], []
        for ticket in taken.batch:
            action, logprobs, version, cpu, born = self._facts.pop(ticket)
            generation = Generation("", "", (), action, logprobs, (version, version), 1.0, True)
            seconds, ended = self.launched[ticket][1], self._finished[ticket]
            info = {"cpu_time": cpu}
            reward = self.policy.reward(action)
            samples.append(
                Sample(
                    ticket=ticket,
                    generation=generation,
                    task="bandit",
                    group=0,
                    reward=reward,
                    reward_valid=True,
                    duration=seconds,
                    outcome="scored",
                    queued=born,
                    generated=born,
                    started=ended - seconds,
                    ended=ended,
                    info=info,
                )
            )
            actions.append(action)
            lags.append(self.rule.updates - version)
        kinds = np.array([action[0] for action in actions])
        return Batch(samples, kinds, actions, likely, self.clock, np.array(lags))


def _softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
