"""Which actions may start, and which finished ones make the next batch.

An admission rule is a pure state machine: it holds ticket numbers, no clock, no task and no sample. The trainer reports
what happened (``launch``, ``complete``, ``take``, ``advance``) and asks what to do (``wanted``, ``ready``).

Invariants, for every rule and every order of events:

1. A launched ticket is in exactly one place: running, waiting (finished, not trained), trained, masked or dropped.
2. A batch holds exactly ``batch_size`` distinct tickets that finished validly; a ticket is trained at most once.
3. ``running + waiting <= in_flight_max``.
4. Outside an update, a batch is ready, or an action may start, or one is running: the trainer never waits for nothing.
5. ``OldestFirst`` drops nothing, so its trained share of every kind of action tends to the policy's share.
6. A rule restored from ``state()`` answers every later event as the original would.

The rule decides the bias of asynchronous training more than the loss does: what is dropped is mostly what was slow.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Admission", "OldestFirst", "Race", "Taken"]


@dataclass(frozen=True, slots=True)
class Taken:
    """The tickets of a batch, and those that taking it threw away."""

    batch: tuple[int, ...]
    dropped_running: tuple[int, ...] = ()
    """Still running; cancel them where possible, their late results are ignored."""
    dropped_waiting: tuple[int, ...] = ()
    """Finished, but not among the first."""


class Admission(ABC):
    """Book-keeping that all rules share.

    Args:
        batch_size: Valid samples in a batch, B.
    """

    def __init__(self, batch_size: int) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}.")
        self.batch_size = batch_size
        self.updates = 0
        """Finished updates."""
        self.launched = 0
        self.trained = 0
        self.masked = 0
        self.dropped = 0
        self.updating = False
        """True between ``take`` and ``advance``."""
        self._running: dict[int, None] = {}
        self._waiting: list[int] = []
        self._late: set[int] = set()

    @property
    @abstractmethod
    def in_flight_max(self) -> int:
        """Most actions that are running or waiting at once."""

    @abstractmethod
    def wanted(self) -> int:
        """How many actions may start now."""

    @abstractmethod
    def take(self) -> Taken:
        """Take the next batch out; starts an update."""

    @property
    def running(self) -> tuple[int, ...]:
        """Tickets in flight, in the order they were launched."""
        return tuple(self._running)

    @property
    def waiting(self) -> tuple[int, ...]:
        """Finished tickets in order of completion."""
        return tuple(self._waiting)

    @property
    def late(self) -> frozenset[int]:
        """Dropped tickets whose programs have not ended yet."""
        return frozenset(self._late)

    def launch(self, ticket: int) -> None:
        """An action started.

        Raises:
            ValueError: The ticket is in flight already, or no action may start.
        """
        if ticket in self._running or ticket in self._late or ticket in self._waiting:
            raise ValueError(f"Ticket {ticket} is in flight already.")
        if self.wanted() < 1:
            raise ValueError(f"No action may start now: {len(self._running)} run and {len(self._waiting)} wait.")
        self._running[ticket] = None
        self.launched += 1

    def complete(self, ticket: int, *, valid: bool) -> bool:
        """An action ended; ``valid=False`` masks it (its place is given to a new action).

        Returns:
            True when the ticket now waits to be trained; False when it is masked or had been dropped.

        Raises:
            KeyError: The ticket is not in flight.
        """
        if ticket in self._late:
            self._late.remove(ticket)
            return False
        if ticket not in self._running:
            raise KeyError(f"Ticket {ticket} is not in flight.")
        del self._running[ticket]
        if not valid:
            self.masked += 1
            return False
        self._waiting.append(ticket)
        return True

    def ready(self) -> bool:
        """True when a batch can be taken."""
        return not self.updating and len(self._waiting) >= self.batch_size

    def advance(self) -> None:
        """The update on the batch taken last is finished."""
        if not self.updating:
            raise RuntimeError("advance() without take().")
        self.updating = False
        self.updates += 1

    def _start_update(self) -> None:
        if not self.ready():
            raise RuntimeError(f"No batch is ready: {len(self._waiting)} of {self.batch_size} samples wait.")
        self.updating = True
        self.trained += self.batch_size

    def state(self) -> dict[str, Any]:
        """JSON-able state."""
        return {
            "updates": self.updates,
            "launched": self.launched,
            "trained": self.trained,
            "masked": self.masked,
            "dropped": self.dropped,
            "updating": self.updating,
            "running": list(self._running),
            "waiting": list(self._waiting),
            "late": sorted(self._late),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``."""
        self.updates = int(state["updates"])
        self.launched = int(state["launched"])
        self.trained = int(state["trained"])
        self.masked = int(state["masked"])
        self.dropped = int(state["dropped"])
        self.updating = bool(state["updating"])
        self._running = dict.fromkeys(int(ticket) for ticket in state["running"])
        self._waiting = [int(ticket) for ticket in state["waiting"]]
        self._late = {int(ticket) for ticket in state["late"]}


class Race(Admission):
    """``m * B`` actions in flight, the first ``B`` completions make the batch (arXiv 2509.01684, Algorithm 1).

    Args:
        batch_size: B.
        multiplier: m, at least 1; with 1 the rule is synchronous.
        leftovers: ``keep``: actions that lost the race run on and may win a later one. ``cancel``: they are dropped,
            which starves slow actions (with m = 2 and two equally likely actions, 1 s and 10 s, 3 % of what is
            trained is slow).
    """

    def __init__(self, batch_size: int, multiplier: float = 2.0, leftovers: Literal["keep", "cancel"] = "keep") -> None:
        super().__init__(batch_size)
        if multiplier < 1:
            raise ValueError(f"The multiplier of a race must be at least 1, not {multiplier}.")
        if leftovers not in ("keep", "cancel"):
            raise ValueError(f"leftovers must be 'keep' or 'cancel', not {leftovers!r}.")
        self.multiplier = multiplier
        self.leftovers = leftovers

    @property
    def in_flight_max(self) -> int:
        """ceil(m * B)."""
        return math.ceil(self.multiplier * self.batch_size)

    def wanted(self) -> int:
        """Fill up to m * B; nothing starts during an update, as in Algorithm 1."""
        if self.updating:
            return 0
        return self.in_flight_max - len(self._running) - len(self._waiting)

    def take(self) -> Taken:
        """The first B completions; with ``cancel`` all others are dropped."""
        self._start_update()
        batch, rest = self._waiting[: self.batch_size], self._waiting[self.batch_size :]
        self._waiting = rest
        if self.leftovers == "keep":
            return Taken(tuple(batch))
        running = tuple(self._running)
        self.dropped += len(running) + len(rest)
        self._late |= set(running)
        self._running, self._waiting = {}, []
        return Taken(tuple(batch), running, tuple(rest))


class OldestFirst(Admission):
    """A capacity gate, and of what has finished the oldest-started B make the batch; nothing is ever dropped.

    At most ``(updates + 1 + lookahead) * B`` valid actions are started, so executors have ``lookahead`` batches of
    work while the learner is busy, and the number of untrained actions is bounded. The age of a single sample is not
    bounded: a slow one is trained when it ends, with its recorded log-probabilities.

    Args:
        batch_size: B.
        lookahead: Batches started ahead of the policy's version; 0 is synchronous. Executors stay busy when it is at
            least about (longest duration / mean duration) * (slots / B).
        total: Updates of the whole run, None without end; nothing is started that none of them would train.
    """

    def __init__(self, batch_size: int, lookahead: int = 1, total: int | None = None) -> None:
        super().__init__(batch_size)
        if lookahead < 0:
            raise ValueError(f"lookahead must be at least 0, not {lookahead}.")
        self.lookahead = lookahead
        self.total = total

    @property
    def in_flight_max(self) -> int:
        """(1 + lookahead) * B."""
        return (1 + self.lookahead) * self.batch_size

    def wanted(self) -> int:
        """What the gate leaves."""
        batches = self.updates + 1 + self.lookahead
        if self.total is not None:
            batches = min(batches, self.total)
        return max(0, batches * self.batch_size - (self.launched - self.masked))

    def take(self) -> Taken:
        """The B oldest-started of the finished samples."""
        self._start_update()
        batch = sorted(self._waiting)[: self.batch_size]
        chosen = set(batch)
        self._waiting = [ticket for ticket in self._waiting if ticket not in chosen]
        return Taken(tuple(batch))
