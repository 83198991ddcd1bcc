"""The trainers' sub-commands of ``mle-gym``; everything heavy is imported when one is called."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["evaluate", "feasible", "report", "sft", "train"]


def train(argv: Sequence[str]) -> int:
    """Train a policy on one or more tasks."""
    from trainers.async_ppo.command import main

    return main(argv)


def sft(argv: Sequence[str]) -> int:
    """Warm-start a policy on demonstration programs."""
    from trainers.sft.command import main

    return main(argv)


def report(argv: Sequence[str]) -> int:
    """Write a report of one or more training runs."""
    from trainers.common.report import main

    return main(argv)


def feasible(argv: Sequence[str]) -> int:
    """Say which tasks a policy solves at all, by the paper's rule."""
    from trainers.protocol.feasible import main

    return main(argv)


def evaluate(argv: Sequence[str]) -> int:
    """Judge a policy on fresh programs: best of n, or best of n and improve once."""
    from trainers.protocol.command import main

    return main(argv)
