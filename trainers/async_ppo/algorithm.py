"""Duration-aware PPO for language models, with the choices of baseline and of importance correction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainers.async_ppo.options import PPOOptions
from trainers.common.advantages import (
    RunningMean,
    RunningScale,
    gae,
    leave_one_out,
    over_group_std,
    shape_advantages,
)
from trainers.common.algorithm import Algorithm, Bools, Floats, TokenBatch
from trainers.common.config import TrainConfig
from trainers.common.importance import centering_term
from trainers.common.losses import (
    Loss,
    decoupled_ppo,
    entropy_bonus,
    exact_kl,
    k3_kl,
    ppo_clip,
    value_loss,
    weighted_reinforce,
)
from trainers.common.sample import Sample

__all__ = ["AsyncPPO"]


class AsyncPPO(Algorithm):
    """PPO with token-level clipping, or REINFORCE with bounded weights; a baseline; optional KL and entropy terms.

    The baseline is unweighted: with duration weights a baseline of E[d r] / E[d] removes the signal once slow samples
    dominate.
    """

    @dataclass(frozen=True)
    class Options(PPOOptions):
        """What ``[algorithm.options]`` may hold."""

    options: Options

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.needs_reference = options.kl > 0
        self.needs_full = options.kl > 0 and options.kl_kind == "exact"
        self.needs_proximal = options.correction == "decoupled_ppo"
        self.needs_candidates = options.centering != "none"
        self.needs_values = options.baseline == "critic"
        self._means = RunningMean()
        self._scale = RunningScale()

    def check(self, config: TrainConfig) -> None:
        """Refuse a sampling that does not record what score centering reads."""
        self.options.check(config)

    def advantages(self, samples: Sequence[Sample]) -> Floats:
        """Reward minus baseline, brought to a common scale.

        A sample alone with its prompt has no others to compare with, and a task in its first batch has no past; each
        then takes the other baseline, and 0 where there is neither.
        """
        rewards = np.array([sample.reward for sample in samples], dtype=np.float64)
        groups = [(sample.task, sample.group) for sample in samples]
        others = leave_one_out(rewards, groups)
        if self.options.group_std:
            others = over_group_std(others, rewards, groups)
        past = np.array([self._past(sample) for sample in samples], dtype=np.float64)
        first, second = (past, others) if self.options.baseline == "running_mean" else (others, past)
        result = np.nan_to_num(np.where(np.isnan(first), second, first), nan=0.0)
        for task in sorted({sample.task for sample in samples}):
            self._means.update(task, [sample.reward for sample in samples if sample.task == task])
        if self.options.normalise:
            result = self._scale.normalise(result)
        if self.options.sequence_mean:
            result = result * _shortness(samples)
        return shape_advantages(result, negative_scale=self.options.negative_scale, clip=self.options.advantage_clip)

    def token_advantages(self, samples: Sequence[Sample], values: Floats, mask: Bools) -> tuple[Floats, Floats]:
        """Generalised advantage estimation; the reward comes with the last token."""
        rewards = np.zeros_like(values)
        lengths = mask.sum(1)
        rewards[np.arange(len(samples)), lengths - 1] = [sample.reward for sample in samples]
        ended = np.arange(mask.shape[1]) >= lengths[:, None] - 1
        result = gae(
            rewards.T, values.T, np.zeros(len(samples)), ended.T, gamma=self.options.gamma, lam=self.options.lam
        ).T
        returns = result + values
        if self.options.normalise:
            result[mask] = self._scale.normalise(result[mask])
        if self.options.sequence_mean:
            result = result * _shortness(samples)[:, None]
        shaped = shape_advantages(result, negative_scale=self.options.negative_scale, clip=self.options.advantage_clip)
        return shaped, returns

    def loss(self, batch: TokenBatch) -> Loss:
        """The policy's loss, plus KL to the start policy, minus entropy, plus the critic's loss."""
        options = self.options
        terms = [
            (1.0, self._policy_loss(batch)),
            (options.entropy, entropy_bonus(batch.entropy, batch.mask, total_tokens=batch.total_tokens)),
        ]
        if batch.full is not None and batch.reference_full is not None:
            divergence = exact_kl(batch.full, batch.reference_full, batch.mask, total_tokens=batch.total_tokens)
            terms.append((options.kl, divergence))
        elif batch.reference is not None:
            divergence = k3_kl(batch.logprobs, batch.reference, batch.mask, total_tokens=batch.total_tokens)
            terms.append((options.kl, divergence))
        if batch.values is not None and batch.old_values is not None and batch.returns is not None:
            # The critic shares nothing with the policy, so a factor would change nothing.
            critic = value_loss(
                batch.values,
                batch.old_values,
                batch.returns,
                batch.mask,
                clip=options.value_clip,
                total_tokens=batch.total_tokens,
            )
            terms.append((1.0, critic))
        value = terms[0][1].value
        statistics: dict[str, float] = {}
        for _, term in terms:
            statistics |= term.statistics
        for coefficient, term in terms[1:]:
            if coefficient:
                value = value + coefficient * term.value
        return Loss(value, statistics)

    def state(self) -> dict[str, Any]:
        """Baselines and scale."""
        return {"means": self._means.state(), "scale": self._scale.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``."""
        self._means.restore(state["means"])
        self._scale.restore(state["scale"])

    def _policy_loss(self, batch: TokenBatch) -> Loss:
        options = self.options
        if options.correction == "ppo_clip":
            return ppo_clip(
                batch.logprobs,
                batch.behaviour,
                batch.mask,
                batch.advantages,
                batch.weights,
                clip=options.clip,
                total_tokens=batch.total_tokens,
            )
        if options.correction == "decoupled_ppo":
            assert batch.proximal is not None
            return decoupled_ppo(
                batch.logprobs,
                batch.proximal,
                batch.behaviour,
                batch.mask,
                batch.advantages,
                batch.weights,
                clip=options.clip,
                cap=options.behaviour_cap,
                total_tokens=batch.total_tokens,
            )
        centering = None
        if options.centering != "none":
            assert batch.candidates is not None
            assert batch.behaviour_candidates is not None
            centering = centering_term(
                batch.candidates, batch.behaviour_candidates, options.weight, complete=batch.complete
            )
        return weighted_reinforce(
            batch.logprobs,
            batch.behaviour,
            batch.mask,
            batch.advantages,
            batch.weights,
            weight=options.weight,
            centering=centering,
            total_tokens=batch.total_tokens,
        )

    def _past(self, sample: Sample) -> float:
        mean = self._means.get(sample.task)
        return float("nan") if mean is None else sample.reward - mean


def _shortness(samples: Sequence[Sample]) -> Floats:
    """Mean length of the batch over each response's own: turns a mean over tokens into one over responses, [B]."""
    lengths = np.array([len(sample.generation.response_ids) for sample in samples], dtype=np.float64)
    return float(lengths.mean()) / lengths
