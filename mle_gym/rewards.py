"""Reward functions, by name."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from mle_gym.grading.grade import Grade, Split
from mle_gym.suggest import choose
from mle_gym.tasks.task import TaskData

__all__ = [
    "NEEDS",
    "REWARDS",
    "Judged",
    "Reward",
    "get_reward",
    "medal",
    "normalized",
    "paper",
    "percentile",
    "register_reward",
]

NEEDS: tuple[str, ...] = ("gold", "medal", "percentile")
"""What a reward may need of a task's data: the score that earns gold, medals, a leaderboard's percentiles."""


@dataclass(frozen=True, slots=True)
class Judged:
    """All that a reward may depend on: one judged program."""

    grade: Grade | None
    """On the reward split; None when the submission is not valid or there is none. Its score is never nan."""
    credit: float
    """0.1 for each milestone reached, in [0, 0.7]."""
    sample_score: float = math.nan
    """Score of the sample submission on the reward split; given to rewards that need ``gold``."""
    gold: float = math.nan
    """Score that earns gold; given to rewards that need ``gold``."""


@dataclass(frozen=True, slots=True)
class Reward:
    """A named reward: a pure function of a judged program, and what it needs of the task."""

    name: str
    function: Callable[[Judged], float]
    needs: tuple[str, ...] = ()

    def check(self, data: TaskData, split: str) -> None:
        """Raise ``ValueError`` if the task, on these data, lacks what the reward needs."""
        real = data.kind != "synthetic" and data.task.thresholds is not None
        missing = [need for need in self.needs if need in ("gold", "medal") and not real]
        if "percentile" in self.needs:
            sample = data.grade(data.sample_path, cast(Split, split))
            missing += ["percentile"] if math.isnan(sample.percentile) else []
        if "gold" in self.needs and not missing and not math.isfinite(data.sample_score(cast(Split, split))):
            missing.append("a score of the sample submission")
        if missing:
            raise ValueError(
                f"reward={self.name!r} needs {' and '.join(missing)}, which {data.task.name} does not have on "
                f"{data.kind} data; use reward='paper'."
            )

    def judge(self, grade: Grade | None, credit: float, data: TaskData, split: str) -> float:
        """Return the reward of a program judged on these data."""
        if "gold" not in self.needs or data.task.thresholds is None:
            return self(Judged(grade, credit))
        return self(Judged(grade, credit, data.sample_score(cast(Split, split)), data.task.thresholds.gold))

    def __call__(self, judged: Judged) -> float:
        """Return the reward.

        Raises:
            ValueError: The function gave a value that is not finite.
        """
        try:
            value = float(self.function(judged))
        except (TypeError, ValueError) as error:
            raise ValueError(f"Reward {self.name!r} failed on {judged}: {error}; it has to return a number.") from error
        if not math.isfinite(value):
            raise ValueError(f"Reward {self.name!r} gave {value} for {judged}; a reward has to be finite.")
        return value


def paper(judged: Judged) -> float:
    r"""The reward of arXiv 2509.01684: the score itself, or -10 with credit for what a failing program did.

    .. math:: r = \mathrm{clip}(\sigma s, -9, 10) \text{ if valid, else } -10 + c

    :math:`\sigma = 1` where higher is better, else -1; :math:`c` is 0.1 for each milestone. The clip is ours: an
    unbounded loss could otherwise make a valid submission worse than none at all.
    """
    if judged.grade is None:
        return -10.0 + judged.credit
    sign = 1.0 if judged.grade.higher_is_better else -1.0
    return min(max(sign * judged.grade.score, -9.0), 10.0)


def medal(judged: Judged) -> float:
    r"""The medal on the task's leaderboard.

    .. math:: r = 1, \tfrac23, \tfrac13, 0 \text{ for gold, silver, bronze and none if valid, else } -1 + c
    """
    if judged.grade is None:
        return -1.0 + judged.credit
    return {"gold": 1.0, "silver": 2 / 3, "bronze": 1 / 3}.get(judged.grade.medal, 0.0)


def percentile(judged: Judged) -> float:
    r"""The share of the leaderboard that the score beats.

    .. math:: r = p \in [0, 1] \text{ if valid, else } -1 + c
    """
    return -1.0 + judged.credit if judged.grade is None else judged.grade.percentile


def normalized(judged: Judged) -> float:
    r"""The score between the sample submission's and gold's, comparable across tasks and metrics.

    .. math:: r = \mathrm{clip}\left(\frac{s - s_\mathrm{sample}}{s_\mathrm{gold} - s_\mathrm{sample}}, 0, 1\right)
              \text{ if valid, else } -1 + c

    The quotient has the right sign for metrics where lower is better too. Where the sample submission already earns
    gold, a valid submission gets 1 if it is at least as good as gold, else 0.
    """
    if judged.grade is None:
        return -1.0 + judged.credit
    sign = 1.0 if judged.grade.higher_is_better else -1.0
    score, sample, gold = (sign * x for x in (judged.grade.score, judged.sample_score, judged.gold))
    if score >= gold:
        return 1.0
    if score <= sample or gold <= sample:
        return 0.0
    return (score - sample) / (gold - sample)


REWARDS: dict[str, Reward] = {}
"""Name -> reward; add with :func:`register_reward`."""


def register_reward(name: str, function: Callable[[Judged], float], *, needs: tuple[str, ...] = ()) -> Reward:
    """Make ``function`` available as ``gym.make(..., reward=name)`` in this process.

    Args:
        name: A new name.
        function: A pure function of :class:`Judged` that gives a finite float.
        needs: Which of :data:`NEEDS` the task must have; an environment whose task lacks one raises at its first reset.

    Raises:
        ValueError: The name is taken by another function, or ``needs`` holds an unknown word.
    """
    for need in needs:
        choose("needs", need, NEEDS)
    if name in REWARDS and REWARDS[name].function is not function:
        raise ValueError(f"A reward called {name!r} is registered already; choose another name.")
    REWARDS[name] = Reward(name, function, needs)
    return REWARDS[name]


def get_reward(name: str) -> Reward:
    """Return a reward by its registered name or as ``package.module:function`` (which works in every process).

    Raises:
        ValueError: There is none.
    """
    if ":" not in name:
        return REWARDS[choose("reward", name, sorted(REWARDS))]
    module, _, attribute = name.partition(":")
    try:
        function = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"reward={name!r} cannot be imported ({error}); give 'package.module:function'.") from error
    return function if isinstance(function, Reward) else Reward(name, function)


register_reward("paper", paper)
register_reward("medal", medal, needs=("medal",))
register_reward("percentile", percentile, needs=("percentile",))
register_reward("normalized", normalized, needs=("gold",))
