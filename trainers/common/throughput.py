"""How fast a run is, and how fast its slots, its generator and its learner would let it be."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["Throughput"]


class Throughput:
    """Totals of a run's work, and the limit they imply.

    No run trains faster than slots / mean duration, than the generator generates while it does nothing else, or than
    the learner learns while it does nothing else; the least of the three is the limit. Where actions are dropped the
    rate may exceed the first: the mean counts slow programs that were paid for and thrown away. Where generator and
    learner share their cores both limits cannot be had at once.

    Args:
        slots: Programs that run at once.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._total = dict.fromkeys(
            ("wall", "programs", "program_seconds", "generated", "generate_seconds", "trained", "learn_seconds"), 0.0
        )

    def add(self, **amounts: float) -> None:
        """Add work: wall seconds; programs and their seconds; samples generated and trained, and the seconds it took.

        Raises:
            KeyError: There is no such total.
        """
        for name, amount in amounts.items():
            self._total[name] += amount

    def metrics(self) -> Mapping[str, float | None]:
        """Samples per second: reached, and allowed by each stage; ``limit_share`` is reached over the least allowed.

        None where nothing was measured yet.
        """
        total = self._total
        per_second = _over(total["programs"], total["program_seconds"])
        limits = {
            "limit_executors": None if per_second is None else self.slots * per_second,
            "limit_generator": _over(total["generated"], total["generate_seconds"]),
            "limit_learner": _over(total["trained"], total["learn_seconds"]),
        }
        known = [value for value in limits.values() if value is not None]
        limit = min(known) if known else None
        rate = _over(total["trained"], total["wall"])
        share = None if rate is None or limit is None else rate / limit
        return {"rate_samples": rate, **limits, "limit_samples": limit, "limit_share": share}


def _over(amount: float, seconds: float) -> float | None:
    return amount / seconds if amount > 0 and seconds > 0 else None
