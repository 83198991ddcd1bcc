"""Samples scored by a policy the way they were drawn: at their temperature, over the tokens that could be drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from trainers.common.candidates import CandidateBatch
from trainers.common.policy import Policy
from trainers.common.sample import Sample
from trainers.common.token_logprobs import TokenLogprobs

__all__ = ["score", "written"]


def score(
    policy: Policy, samples: Sequence[Sample], *, full: bool = False, candidates: bool = False, hidden: bool = False
) -> tuple[TokenLogprobs, CandidateBatch | None]:
    """Score the responses of samples, differentiably.

    Where top-k or top-p sampling left out tokens, log-probabilities are renormalised over those that were left, as the
    sampler's are; entropy and ``full`` stay those of the whole vocabulary.

    Args:
        policy: Scores; it need not be the one that sampled.
        samples: B samples of one temperature.
        full: Return the distributions too.
        candidates: Return the log-probabilities of the recorded candidates too.
        hidden: Return the last hidden states too.

    Returns:
        The scores, and the candidates as recorded (None unless asked for or needed).

    Raises:
        ValueError: The samples differ in temperature, or candidates are asked for and were not recorded.
    """
    generations = [sample.generation for sample in samples]
    responses = [generation.response_ids for generation in generations]
    recorded = CandidateBatch.collate(
        [generation.candidates for generation in generations],
        responses,
        [generation.logprobs for generation in generations],
        policy.device,
    )
    if recorded is None and candidates:
        raise ValueError("The samples have no candidates; the generator must record them (generation.record).")
    if recorded is not None and not (recorded.truncated or candidates):
        recorded = None
    scored = policy.token_logprobs(
        [generation.prompt_ids for generation in generations],
        responses,
        temperature=_temperature(samples),
        full=full or (recorded is not None and recorded.ids is None),
        hidden=hidden,
        candidates=None if recorded is None else recorded.ids,
    )
    if recorded is None:
        return scored, None
    logprobs = scored.full if recorded.ids is None else scored.candidates
    assert logprobs is not None
    if not recorded.truncated:
        return replace(scored, candidates=logprobs), recorded
    drawn = recorded.logprobs > -math.inf
    # On padding nothing could be drawn; a mass of 1 keeps infinities out of it.
    mass = torch.where(drawn | ~scored.mask[..., None], logprobs, -math.inf).logsumexp(-1, keepdim=True)
    return replace(
        scored,
        logprobs=torch.where(scored.mask, scored.logprobs - mass.squeeze(-1), 0.0),
        candidates=torch.where(drawn, logprobs - mass, -math.inf),
    ), recorded


def written(samples: Sequence[Sample]) -> NDArray[np.bool_]:
    """True on response tokens, [B, T], T the longest response."""
    lengths = np.array([len(sample.generation.response_ids) for sample in samples])
    return np.arange(lengths.max(initial=0)) < lengths[:, None]


def _temperature(samples: Sequence[Sample]) -> float:
    temperatures = {sample.generation.temperature for sample in samples}
    if len(temperatures) != 1:
        raise ValueError(f"Samples of one batch have different temperatures: {sorted(temperatures)}.")
    return temperatures.pop()
