"""Algorithms that a real improvement has to beat: the trainer as it is, with one thing taken away."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trainers.async_ppo.algorithm import AsyncPPO
from trainers.common.algorithm import Algorithm, TokenBatch
from trainers.common.losses import Loss, token_mean
from trainers.common.sample import Sample

__all__ = ["OwnData", "ShuffledRewards"]


class ShuffledRewards(AsyncPPO):
    """The same algorithm on rewards that belong to other samples of the batch.

    Everything but the information in the rewards stays: their distribution, the batch, the weights, the clipping. What
    such a run gains, no reward has taught.
    """

    name = "shuffled_rewards"

    def advantages(self, samples: Sequence[Sample]) -> NDArray[np.float64]:
        """Return the advantages after a permutation of the rewards that depends on the batch's tickets alone."""
        order = np.random.default_rng([sample.ticket for sample in samples]).permutation(len(samples))
        shuffled = [
            dataclasses.replace(sample, reward=samples[other].reward)
            for sample, other in zip(samples, order, strict=True)
        ]
        return super().advantages(shuffled)


class OwnData(Algorithm):
    """Supervised learning on the policy's own scored programs: no baseline, no ratio, no negative example.

    Known as expert iteration or rejection-sampling fine-tuning. What it gains over the start, imitation of whatever was
    valid is enough for.
    """

    name = "own_data"

    def advantages(self, samples: Sequence[Sample]) -> NDArray[np.float64]:
        """Return 1 for a sample that was scored, else 0."""
        return np.array([float(sample.outcome == "scored") for sample in samples])

    def loss(self, batch: TokenBatch) -> Loss:
        """Negative log-likelihood of the scored responses, per token of the batch."""
        kept = batch.logprobs * (batch.advantages * batch.weights).unsqueeze(1)
        value = -token_mean(kept, batch.mask, batch.total_tokens)
        return Loss(value, {"policy_loss": float(value.detach())})
