"""What every admission rule shares: the places a ticket can be in, and who may move it.

An admission rule is a pure state machine: it holds ticket numbers, no clock, no task and no sample. The trainer reports
what happened (``launch``, ``complete``, ``take``, ``advance``) and asks what to do (``wanted``, ``ready``).

Invariants, for every rule and every order of events:

1. A launched ticket is in exactly one place: running, waiting (finished, not trained), trained, masked or dropped.
2. A batch holds exactly ``batch_size`` distinct tickets that finished validly; a ticket is trained at most once.
3. ``running + waiting <= in_flight_max``.
4. Outside an update, a batch is ready, or an action may start, or one is running: the trainer never waits for nothing.
5. ``OldestFirst`` and ``InOrder`` drop nothing, so their trained share of every kind of action tends to the policy's.
6. A rule restored from ``state()`` answers every later event as the original would.

The rule decides the bias of asynchronous training more than the loss does: what is dropped is mostly what was slow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

__all__ = ["Admission", "Taken"]


@dataclass(frozen=True, slots=True)
class Taken:
    """The tickets of a batch, and those that were thrown away with it."""

    batch: tuple[int, ...]
    dropped_running: tuple[int, ...] = ()
    """Still running; cancel them where possible, their late results are ignored."""
    dropped_waiting: tuple[int, ...] = ()
    """Finished, but not among the first, or too old."""
    abandoned: tuple[int, ...] = ()
    """Still running, and dropped, but left to run to their end."""

    @property
    def dropped(self) -> tuple[int, ...]:
        """All that was thrown away."""
        return (*self.dropped_running, *self.dropped_waiting, *self.abandoned)


class Admission(ABC):
    """Book-keeping that all rules share.

    Args:
        batch_size: Valid samples in a batch, B.
    """

    safe_when: ClassVar[Literal["finished", "taken"]] = "finished"
    """From when on an action can no longer be dropped; what :class:`trainers.common.inclusion.Inclusion` counts to."""

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

    def complete(self, ticket: int, *, valid: bool, duration: float | None = None) -> bool:
        """An action ended; ``valid=False`` masks it (its place is given to a new action).

        Args:
            ticket: The action.
            valid: The infrastructure did not fail.
            duration: Seconds it ran, for rules that adapt to them.

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

    def advance(self) -> Taken:
        """The update on the batch taken last is finished.

        Returns:
            An empty batch with what a new policy version makes too old.
        """
        if not self.updating:
            raise RuntimeError("advance() without take().")
        self.updating = False
        self.updates += 1
        return Taken(())

    def _drop(self, running: tuple[int, ...], waiting: tuple[int, ...]) -> None:
        """Throw tickets away; those that run are late from now on."""
        self.dropped += len(running) + len(waiting)
        self._late |= set(running)
        for ticket in running:
            del self._running[ticket]
        gone = set(waiting)
        self._waiting = [ticket for ticket in self._waiting if ticket not in gone]

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
