"""What else could have been drawn: the sampler's distribution at each token of a response."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["CandidateBatch", "Candidates"]

_TOLERANCE = 1e-2
"""Largest difference of one log-probability recorded twice; another temperature differs by more."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Tokens that could have been drawn at each of a response's T tokens, on the CPU."""

    ids: Tensor | None
    """Token ids, int32 [T, K], the likeliest first; None is the whole vocabulary in its order."""
    logprobs: Tensor
    """Log-probabilities under the true sampling distribution, float32 [T, K]; minus infinity where none is."""
    truncated: bool
    """True when nothing but the finite candidates could be drawn (top-k or top-p sampling), whose mass is then 1."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Candidates):
            return NotImplemented
        ids, others = self.ids, other.ids
        same = ids is others if ids is None or others is None else torch.equal(ids, others)
        return same and self.truncated == other.truncated and torch.equal(self.logprobs, other.logprobs)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class CandidateBatch:
    """The candidates of B responses, padded on the right to T tokens."""

    ids: Tensor | None
    """int64 [B, T, K]; None is the whole vocabulary."""
    logprobs: Tensor
    """float32 [B, T, K]; minus infinity on padding and where there is no candidate."""
    truncated: bool

    @property
    def complete(self) -> bool:
        """Whether nothing else could have been drawn."""
        return self.truncated or self.ids is None

    @classmethod
    def collate(
        cls,
        candidates: Sequence[Candidates | None],
        response_ids: Sequence[Sequence[int]],
        logprobs: Sequence[Sequence[float]],
        device: torch.device,
    ) -> CandidateBatch | None:
        """Stack the candidates of responses; None where nothing was recorded.

        Args:
            candidates: One for each response.
            response_ids: The tokens that were drawn.
            logprobs: Their recorded log-probabilities, to check that both are of one distribution.
            device: Where the batch is wanted.

        Raises:
            ValueError: Only some responses have candidates, they are of different kinds, or they are not of the
                distribution that the tokens were drawn from.
        """
        present = [one for one in candidates if one is not None]
        if not present:
            return None
        kinds = {(one.ids is None, one.logprobs.shape[1], one.truncated) for one in present}
        if len(present) < len(candidates) or len(kinds) > 1:
            raise ValueError("Samples of one batch must all have candidates of the same kind, or none of them any.")
        whole, width, truncated = kinds.pop()
        longest = max(len(ids) for ids in response_ids)
        padded = torch.full((len(present), longest, width), -math.inf)
        ids = None if whole else torch.zeros(len(present), longest, width, dtype=torch.long)
        for row, (one, drawn, recorded) in enumerate(zip(present, response_ids, logprobs, strict=True)):
            _check(one, drawn, recorded)
            padded[row, : len(drawn)] = one.logprobs
            if ids is not None and one.ids is not None:
                ids[row, : len(drawn)] = one.ids
        return cls(None if ids is None else ids.to(device), padded.to(device), truncated)


def _check(candidates: Candidates, drawn: Sequence[int], recorded: Sequence[float]) -> None:
    tokens = torch.tensor(drawn, dtype=torch.long)[:, None]
    if candidates.ids is None:
        found = candidates.logprobs.gather(1, tokens).squeeze(1)
        there = torch.ones(len(drawn), dtype=torch.bool)
    else:
        match = candidates.ids == tokens
        there = match.any(1)
        found = torch.where(match, candidates.logprobs, 0.0).sum(1)
    if candidates.truncated and not bool(there.all()):
        raise ValueError("A token was drawn that is none of its candidates, although these are all that there were.")
    distance = torch.where(there, (found - torch.tensor(recorded)).abs(), 0.0)
    if len(drawn) and not float(distance.max()) <= _TOLERANCE:
        raise ValueError(
            "The candidates' log-probabilities are not those of the distribution that the tokens were drawn from; "
            "record them after temperature and truncation."
        )
