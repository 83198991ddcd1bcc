"""What a run's samples say, by the version of the policy that wrote them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from mle_gym.instrument.base import MILESTONES
from mle_gym.outcome import Outcome
from trainers.common.families import family

Record = Mapping[str, Any]

__all__ = ["OUTCOME_GROUPS", "Curves"]

_POINTS = 40
"""Most points of a curve: neighbouring versions are joined until there are no more."""

OUTCOME_GROUPS: dict[str, tuple[Outcome, ...]] = {
    "scored": (Outcome.SCORED,),
    "invalid or no submission": (Outcome.INVALID_SUBMISSION, Outcome.NO_SUBMISSION),
    "error while running": (Outcome.RUNTIME_ERROR,),
    "not a program": (Outcome.SYNTAX_ERROR, Outcome.NO_PROGRAM),
    "over a limit": (Outcome.TIMEOUT, Outcome.OUT_OF_MEMORY, Outcome.DISK_LIMIT, Outcome.OUTPUT_LIMIT),
    "machine failed": (Outcome.INFRASTRUCTURE_ERROR,),
}
"""Outcomes that mean the same to a reader; one colour each."""

_TRAINED = MILESTONES.index("trained_model")
_FAMILIES = 5
NO_MODEL = "no model"


@dataclass(frozen=True)
class Curves:
    """Curves over policy versions.

    Samples of one version were written by the same policy, so a curve shows the policy's progress, whatever the order
    in which its programs ended. Samples with ``reward_valid=False`` count in the outcomes only, cancelled ones nowhere:
    nobody waited for what they would have done.

    Args:
        samples: Records of ``samples.jsonl``.
    """

    samples: Sequence[Record]

    @cached_property
    def bins(self) -> list[list[Record]]:
        """Samples of neighbouring versions, at most 40 bins of about as many versions each."""
        by_version: dict[int, list[Record]] = {}
        for sample in self.samples:
            if sample.get("outcome") == Outcome.CANCELLED:
                continue
            by_version.setdefault(int(sample.get("version", 0)), []).append(sample)
        versions = sorted(by_version)
        parts = np.array_split(np.array(versions), min(_POINTS, len(versions))) if versions else []
        return [[sample for version in part for sample in by_version[int(version)]] for part in parts]

    @cached_property
    def versions(self) -> list[float]:
        """Mean policy version of each bin."""
        return [float(np.mean([int(sample.get("version", 0)) for sample in part])) for part in self.bins]

    @cached_property
    def reward(self) -> list[float]:
        """Mean reward."""
        return self._map(lambda part: _mean([float(s["reward"]) for s in _countable(part)]))

    @cached_property
    def scored(self) -> list[float]:
        """Share of programs whose submission was scored."""
        return self._share(_is_scored, among=_countable)

    def duration(self, quantile: float) -> list[float]:
        """Quantile of the program's seconds, over programs that ran."""
        return self._map(lambda part: _quantile([float(s["duration"]) for s in part if _ran(s)], quantile))

    @cached_property
    def outcomes(self) -> dict[str, list[float]]:
        """Share of each group of outcomes; the shares of a bin add up to one."""
        return {name: self._share(partial(_ended_in, group), among=list) for name, group in OUTCOME_GROUPS.items()}

    @cached_property
    def families(self) -> dict[str, list[float]]:
        """Share of each model family among all programs; beyond the five most frequent they are one."""
        counts = Counter(self._family(sample) for sample in self.samples)
        names = [name for name, _ in counts.most_common() if name != NO_MODEL]
        shown, rest = names[:_FAMILIES], set(names[_FAMILIES:])
        groups = {name: {name} for name in shown} | ({"other": rest} if rest else {}) | {NO_MODEL: {NO_MODEL}}
        return {name: self._share(partial(self._belongs, group), among=list) for name, group in groups.items()}

    @cached_property
    def copied(self) -> list[float]:
        """Share of scored programs that fitted no model; nan where nothing was scored."""
        fitted = self._share(partial(_reached, _TRAINED), among=lambda part: [s for s in part if _is_scored(s)])
        return [1 - share for share in fitted]

    @cached_property
    def milestones(self) -> dict[str, list[float]]:
        """Share of programs that reached each milestone."""
        return {name: self._share(partial(_reached, at), among=_countable) for at, name in enumerate(MILESTONES)}

    @cached_property
    def outcome_counts(self) -> dict[str, int]:
        """Samples by outcome, in the order of :class:`Outcome`."""
        counts = Counter(str(sample.get("outcome", "")) for sample in self.samples)
        return {str(outcome): counts[outcome] for outcome in Outcome if counts[outcome]}

    def _map(self, statistic: Callable[[list[Record]], float]) -> list[float]:
        return [statistic(part) for part in self.bins]

    def _share(self, test: Callable[[Record], bool], *, among: Callable[[list[Record]], list[Record]]) -> list[float]:
        """Return, for each bin, the share of the chosen samples that pass the test."""
        return self._map(lambda part: _mean([test(sample) for sample in among(part)]))

    def _belongs(self, families: set[str], sample: Record) -> bool:
        return self._family(sample) in families

    @cached_property
    def _family_cache(self) -> dict[str, str]:
        return {}

    def _family(self, sample: Record) -> str:
        program = str((sample.get("info") or {}).get("program") or "")
        if program not in self._family_cache:
            self._family_cache[program] = family(program) or NO_MODEL
        return self._family_cache[program]


def _countable(part: Sequence[Record]) -> list[Record]:
    return [sample for sample in part if sample.get("reward_valid", True) and sample.get("reward") is not None]


def _is_scored(sample: Record) -> bool:
    return bool(sample.get("outcome") == Outcome.SCORED)


def _ended_in(outcomes: tuple[Outcome, ...], sample: Record) -> bool:
    return sample.get("outcome") in outcomes


def _reached(milestone: int, sample: Record) -> bool:
    return _milestones(sample)[milestone]


def _ran(sample: Record) -> bool:
    return bool(sample.get("reward_valid", True)) and float(sample.get("duration") or 0.0) > 0


def _milestones(sample: Record) -> list[bool]:
    flags = (sample.get("info") or {}).get("milestones") or []
    return [bool(flag) for flag in flags] + [False] * (len(MILESTONES) - len(flags))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _quantile(values: Sequence[float], quantile: float) -> float:
    return float(np.quantile(values, quantile)) if len(values) else math.nan
