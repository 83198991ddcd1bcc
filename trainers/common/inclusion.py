"""How likely an action of some age is not to have been dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Inclusion", "survival"]


@dataclass(slots=True)
class _Life:
    """What is known of one action; stamps in seconds since the run's start."""

    born: float
    """When it was launched: exact once it has ended, before that when the last completion before it was."""
    finished: float | None = None
    """When its program ended."""
    until: float | None = None
    """When it was dropped or became safe; None while neither."""
    dropped: bool = False


class Inclusion:
    """Follows every action from launch to drop, and estimates G, the survival of the time to being *dropped*.

    An action that ends at age x is trained only if it is dropped no earlier, so among those trained it stands for
    1 / G(x) launched ones. G is a Kaplan-Meier estimate with the roles reversed: drops are the events; actions that
    became safe, or are still under way, are censored at their age. It assumes that when an action would be dropped does
    not depend on how long it would run; a rule drops for what the *other* actions do, so with many in a batch that is
    nearly so.

    A batch is asked about before its own fates are told (``settle``), so neither its samples nor what taking it drops
    have a part in its weights. Time is read off the completions alone (the end of the latest is *now*), never off a
    clock: a run that is repeated from its record finds the same weights.

    Args:
        safe_when: From when on an action can no longer be dropped: when its program has ``finished`` (a race), or when
            a batch has ``taken`` it (an age limit applies to what waits, too).
        window: Settled actions remembered.
    """

    def __init__(self, safe_when: Literal["finished", "taken"] = "finished", window: int = 4096) -> None:
        if window < 1:
            raise ValueError(f"window must be at least 1, not {window}.")
        self.safe_when = safe_when
        self.window = window
        self.now = 0.0
        """End of the latest completion."""
        self._open: dict[int, _Life] = {}
        self._settled: dict[int, _Life] = {}

    def launch(self, tickets: Iterable[int]) -> None:
        """Actions were launched."""
        for ticket in tickets:
            self._open[ticket] = _Life(self.now)

    def finish(self, ticket: int, generated: float, ended: float, *, valid: bool) -> None:
        """A program ended; one whose infrastructure failed is no evidence, one that had been dropped gets its stamp."""
        self.now = max(self.now, ended)
        if ticket in self._settled:
            self._settled[ticket].born = generated
        elif ticket in self._open and valid:
            self._open[ticket].born, self._open[ticket].finished = generated, ended
        else:
            self._open.pop(ticket, None)

    def probabilities(self, batch: Sequence[int], dropped: Iterable[int] = ()) -> NDArray[np.float64]:
        """G at the age of each action of a batch that is about to be trained, [B].

        Args:
            batch: The batch.
            dropped: What taking it drops.
        """
        own = {*batch, *dropped}
        ages = np.array([self._age(self._open[ticket]) for ticket in batch])
        if not any(life.dropped for life in self._settled.values()):
            return np.ones(len(batch))
        lives = [*self._settled.values(), *(life for ticket, life in self._open.items() if ticket not in own)]
        return survival([self._age(life) for life in lives], [life.dropped for life in lives], ages)

    def settle(self, batch: Iterable[int], dropped: Iterable[int]) -> None:
        """A batch was taken, and other actions were dropped."""
        for tickets, gone in ((batch, False), (dropped, True)):
            for ticket in tickets:
                life = self._open.pop(ticket)
                # A drop is an event at the moment it happens, whether the program had ended or not.
                safe = life.finished if self.safe_when == "finished" and not gone else None
                life.until, life.dropped = self.now if safe is None else safe, gone
                self._settled[ticket] = life
        while len(self._settled) > self.window:
            del self._settled[next(iter(self._settled))]

    def state(self) -> dict[str, Any]:
        """JSON-able state."""
        return {
            "now": self.now,
            "lives": [
                [ticket, life.born, life.finished, life.until, life.dropped]
                for lives in (self._settled, self._open)
                for ticket, life in lives.items()
            ],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``."""
        self.now = float(state["now"])
        self._open, self._settled = {}, {}
        for ticket, *values in state["lives"]:
            life = _Life(*values)
            (self._open if life.until is None else self._settled)[int(ticket)] = life

    def _age(self, life: _Life) -> float:
        until = life.until
        if until is None:
            until = life.finished if life.finished is not None and self.safe_when == "finished" else self.now
        return max(0.0, until - life.born)


def survival(times: ArrayLike, events: ArrayLike, at: ArrayLike) -> NDArray[np.float64]:
    """P(T >= x) by Kaplan and Meier (1958), from times of which some are censored.

    Args:
        times: [N] when the event happened, or up to when it had not.
        events: [N] False where the time is censored.
        at: [M] x. An event at x itself does not count.

    Returns:
        [M].
    """
    seconds, happened = np.asarray(times, dtype=np.float64), np.asarray(events, dtype=bool)
    moments, counts = np.unique(seconds[happened], return_counts=True)
    at_risk = len(seconds) - np.searchsorted(np.sort(seconds), moments, side="left")
    curve = np.concatenate([[1.0], np.cumprod(1.0 - counts / np.maximum(at_risk, 1))])
    return np.asarray(curve[np.searchsorted(moments, np.asarray(at, dtype=np.float64), side="left")])
