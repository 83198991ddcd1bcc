"""The contract of a generator: prompts in, recorded responses out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from trainers.common.sample import Generation

__all__ = ["Generator"]


class Generator(Protocol):
    """Samples responses from the current policy. Local: transformers; others: vLLM, an OpenAI-compatible endpoint."""

    def generate(
        self, prompts: Sequence[str], *, temperature: float, max_new_tokens: int, seed: int
    ) -> list[Generation]:
        """Sample one response for each prompt; ``temperature=0`` is greedy (log-probabilities are then at 1.0).

        The same seed, prompts and parameters give the same responses, bit for bit on CPU.
        """
        ...

    def sync(self, version: int) -> None:
        """Take over the learner's parameters; later generations are stamped ``version``."""
        ...
