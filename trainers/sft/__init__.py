"""Supervised warm start of a policy, and the tiny language model that ships with it."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Run ``mle-gym sft``; torch is imported only now."""
    from trainers.sft.command import main as run

    return run(argv)
