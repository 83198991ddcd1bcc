"""Whether the trained samples are the launched ones: the selection that asynchronous training makes, measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["Audit"]

_FATES = ("running", "waiting", "trained", "masked", "dropped")
_DECILES = 10


class Audit:
    """Follows every ticket from launch to its fate.

    A dropped action whose program ends later is known by its true duration; one that was cancelled counts with the
    seconds it ran, a lower bound.
    """

    def __init__(self) -> None:
        self._version: dict[int, int] = {}
        self._duration: dict[int, float] = {}
        self._fate: dict[int, str] = {}

    def launch(self, tickets: Iterable[int], version: int) -> None:
        """Actions were started by this policy version."""
        for ticket in tickets:
            self._version[ticket] = version
            self._fate[ticket] = "running"

    def finish(self, ticket: int, duration: float, fate: str) -> None:
        """An action ended: it waits, is masked, or had been dropped."""
        self._duration[ticket] = duration
        self._fate[ticket] = fate

    def settle(self, tickets: Iterable[int], fate: str) -> None:
        """Actions were trained or dropped."""
        for ticket in tickets:
            self._fate[ticket] = fate

    def deciles(self) -> dict[str, list[float]]:
        """Share of launched and of trained samples in each decile of duration.

        Deciles are those of all finished valid launches, so ``launched`` is flat but for ties; ``trained`` falls with
        duration where the admission rule starves slow actions.

        Returns:
            ``edges`` (11 values, seconds), ``launched``, ``trained``, ``dropped`` (10 shares each; empty without data).
        """
        known = [ticket for ticket, fate in self._fate.items() if ticket in self._duration and fate != "masked"]
        if not known:
            return {"edges": [], "launched": [], "trained": [], "dropped": []}
        durations = np.array([self._duration[ticket] for ticket in known])
        edges = np.quantile(durations, np.linspace(0, 1, _DECILES + 1))
        bins = np.clip(np.searchsorted(edges, durations, side="right") - 1, 0, _DECILES - 1)
        fates = np.array([self._fate[ticket] for ticket in known])

        def share(chosen: Any) -> list[float]:
            counts = np.bincount(bins[chosen], minlength=_DECILES)
            return [float(value) for value in counts / max(1, counts.sum())]

        everything = np.ones(len(known), dtype=bool)
        return {
            "edges": [float(edge) for edge in edges],
            "launched": share(everything),
            "trained": share(fates == "trained"),
            "dropped": share(fates == "dropped"),
        }

    def versions(self) -> dict[int, dict[str, int]]:
        """Tickets by the policy version that wrote them and by fate."""
        counts = Counter((self._version[ticket], fate) for ticket, fate in self._fate.items())
        return {
            version: {fate: counts[version, fate] for fate in _FATES} for version in sorted(set(self._version.values()))
        }

    def report(self) -> dict[str, Any]:
        """Everything, for ``audit.json``."""
        return {"deciles": self.deciles(), "versions": self.versions()}

    def state(self) -> dict[str, Any]:
        """JSON-able state."""
        return {
            "tickets": [
                [ticket, self._version[ticket], self._duration.get(ticket), fate] for ticket, fate in self._fate.items()
            ]
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``."""
        rows: Sequence[Any] = state["tickets"]
        self._version = {row[0]: row[1] for row in rows}
        self._duration = {row[0]: row[2] for row in rows if row[2] is not None}
        self._fate = {row[0]: row[3] for row in rows}
