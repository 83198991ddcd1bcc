"""Whether the trained samples are the launched ones: the selection that asynchronous training makes, measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Audit"]

_FATES = ("running", "waiting", "trained", "masked", "dropped")
_STAGES = ("launched", "finished", "trained", "dropped")
_DECILES = 10
_VERSIONS = 40
"""Most rows of the table by version: neighbouring versions are joined until there are no more."""


class Audit:
    """Follows every ticket from launch to its fate, and what the loss did with it.

    A dropped action whose program ends later is known by its true duration; one that was cancelled counts with the
    seconds it ran, a lower bound.

    Two biases are told apart. The first is of admission: ``trained`` falls with duration where slow actions are
    dropped. The second is of the loss: a slow action is old when it is trained, its importance ratios are far from 1,
    and it is clipped more, so it counts less although it is there.
    """

    def __init__(self) -> None:
        self._version: dict[int, int] = {}
        self._duration: dict[int, float] = {}
        self._fate: dict[int, str] = {}
        self._cut: set[int] = set()
        self._learned: dict[int, tuple[float, ...]] = {}

    def launch(self, tickets: Iterable[int], version: int) -> None:
        """Actions were started by this policy version."""
        for ticket in tickets:
            self._version[ticket] = version
            self._fate[ticket] = "running"

    def finish(self, ticket: int, duration: float, fate: str, *, cut: bool = False) -> None:
        """An action ended: it waits, is masked, or had been dropped; ``cut``: it was ended before its time."""
        self._duration[ticket] = duration
        self._fate[ticket] = fate
        if cut:
            self._cut.add(ticket)

    def settle(self, tickets: Iterable[int], fate: str) -> None:
        """Actions were trained or dropped."""
        for ticket in tickets:
            self._fate[ticket] = fate

    def learn(self, tickets: Sequence[int], version: int, treatment: ArrayLike) -> None:
        """The policy of this version was updated on a batch.

        Args:
            tickets: The batch.
            version: Of the policy before the update.
            treatment: [B, 5] weight, tokens, clipped tokens, sum of the importance ratios, sum of their squares.
        """
        for ticket, row in zip(tickets, np.asarray(treatment, dtype=np.float64).tolist(), strict=True):
            self._learned[ticket] = (float(version - self._version[ticket]), *row)

    def deciles(self) -> dict[str, list[float]]:
        """Shares of the samples in each decile of duration, and how the loss treated those that were trained.

        Deciles are those of all finished valid launches, so ``launched`` is flat but for ties; ``trained`` falls with
        duration where the admission rule starves slow actions.

        Returns:
            ``edges`` (11 values, seconds); 10 values each, empty without data: the shares ``launched``, ``finished``
            (ran to their own end), ``trained`` and ``dropped``; of the trained ones the share of the weights that they
            had (``weighted``; nothing before the first update), the mean ``lag`` in updates, the ``clip_share`` of
            their tokens and the ``ess_share``, the effective share of their tokens under the importance ratios (Kish).
            nan in a decile of which nothing was trained.
        """
        known, bins, edges = self._bins()
        if not known:
            return {name: [] for name in ("edges", *_STAGES, "weighted", "lag", "clip_share", "ess_share")}
        shares = {}
        for stage, chosen in self._stages(known).items():
            counts = np.bincount(bins[chosen], minlength=_DECILES)
            shares[stage] = [float(value) for value in counts / max(1, counts.sum())]
        return {"edges": edges.tolist(), **shares, **self._treatment(known, bins)}

    def versions(self) -> dict[int, dict[str, int]]:
        """Tickets by the policy version that wrote them and by fate."""
        counts = Counter((self._version[ticket], fate) for ticket, fate in self._fate.items())
        return {
            version: {fate: counts[version, fate] for fate in _FATES} for version in sorted(set(self._version.values()))
        }

    def table(self) -> list[dict[str, Any]]:
        """Samples by policy version and decile of duration.

        Returns:
            A row for each version, or for a few neighbouring ones: ``first`` and ``last`` version, and 10 counts each
            of the ``launched``, ``finished``, ``trained`` and ``dropped`` samples with a known duration.
        """
        known, bins, _ = self._bins()
        if not known:
            return []
        versions = np.array([self._version[ticket] for ticket in known])
        stages = self._stages(known)
        distinct = np.unique(versions)
        rows = []
        for part in np.array_split(distinct, min(_VERSIONS, len(distinct))):
            own = (versions >= part[0]) & (versions <= part[-1])
            counts = {
                stage: np.bincount(bins[own & chosen], minlength=_DECILES).tolist() for stage, chosen in stages.items()
            }
            rows.append({"first": int(part[0]), "last": int(part[-1]), **counts})
        return rows

    def report(self) -> dict[str, Any]:
        """Everything, for ``audit.json``."""
        return {"deciles": self.deciles(), "versions": self.versions(), "table": self.table()}

    def state(self) -> dict[str, Any]:
        """JSON-able state."""
        return {
            "tickets": [
                [ticket, self._version[ticket], self._duration.get(ticket), fate] for ticket, fate in self._fate.items()
            ],
            "cut": sorted(self._cut),
            "learned": [[ticket, *row] for ticket, row in self._learned.items()],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``."""
        rows: Sequence[Any] = state["tickets"]
        self._version = {row[0]: row[1] for row in rows}
        self._duration = {row[0]: row[2] for row in rows if row[2] is not None}
        self._fate = {row[0]: row[3] for row in rows}
        self._cut = set(state.get("cut", ()))
        self._learned = {ticket: tuple(row) for ticket, *row in state.get("learned", ())}

    def _bins(self) -> tuple[list[int], NDArray[np.int64], NDArray[np.float64]]:
        """Tickets with a known duration that are not masked, the decile of each, and the 11 edges."""
        known = [ticket for ticket, fate in self._fate.items() if ticket in self._duration and fate != "masked"]
        if not known:
            return [], np.zeros(0, dtype=np.int64), np.zeros(0)
        durations = np.array([self._duration[ticket] for ticket in known])
        edges = np.quantile(durations, np.linspace(0, 1, _DECILES + 1))
        bins = np.clip(np.searchsorted(edges, durations, side="right") - 1, 0, _DECILES - 1)
        return known, bins, edges

    def _stages(self, known: Sequence[int]) -> dict[str, NDArray[np.bool_]]:
        fates = np.array([self._fate[ticket] for ticket in known])
        finished = np.array([ticket not in self._cut for ticket in known])
        everything = np.ones(len(known), dtype=bool)
        return dict(
            zip(_STAGES, (everything, finished, fates == "trained", fates == "dropped"), strict=True),
        )

    def _treatment(self, known: Sequence[int], bins: NDArray[np.int64]) -> dict[str, list[float]]:
        """Lag, clipped share of tokens and effective share of tokens of the trained samples of each decile."""
        rows = np.array([self._learned.get(ticket, (0.0,) * 6) for ticket in known])
        there = np.array([ticket in self._learned for ticket in known])
        sums = np.array(
            [np.bincount(bins, weights=np.where(there, column, 0.0), minlength=_DECILES) for column in rows.T]
        )
        lag, weight, tokens, clipped, first, second = sums
        samples = np.bincount(bins[there], minlength=_DECILES)
        with np.errstate(invalid="ignore", divide="ignore"):
            return {
                "weighted": (weight / max(1e-300, float(weight.sum()))).tolist(),
                "lag": (lag / samples).tolist(),
                "clip_share": (clipped / tokens).tolist(),
                "ess_share": (first**2 / (tokens * second)).tolist(),
            }
