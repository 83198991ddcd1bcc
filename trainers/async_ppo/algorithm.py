"""Duration-aware PPO for language models: no critic, clipped ratios against recorded behaviour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trainers.common.advantages import RunningMean, RunningScale, leave_one_out, shape_advantages
from trainers.common.algorithm import Algorithm, TokenBatch
from trainers.common.losses import Loss, entropy_bonus, exact_kl, k3_kl, ppo_clip
from trainers.common.sample import Sample

__all__ = ["AsyncPPO"]


class AsyncPPO(Algorithm):
    """PPO with token-level clipping, a critic-free baseline, and optional KL and entropy terms.

    The baseline is unweighted: with duration weights a baseline of E[d r] / E[d] removes the signal once slow samples
    dominate.
    """

    @dataclass(frozen=True)
    class Options:
        """What ``[algorithm.options]`` may hold."""

        clip: float = 0.2
        """Epsilon of the clipped ratio."""
        baseline: Literal["leave_one_out", "running_mean"] = "leave_one_out"
        """Others with the same prompt in the batch, or earlier batches of the same task."""
        normalise: bool = True
        """Divide advantages by their running root mean square."""
        negative_scale: float = 1.0
        """Factor of negative advantages."""
        advantage_clip: float | None = None
        """Largest absolute advantage."""
        kl: float = 0.0
        """Coefficient of the KL divergence to the start policy, per token."""
        kl_kind: Literal["k3", "exact"] = "k3"
        """Estimated on the sampled tokens, or summed over the vocabulary (small models)."""
        entropy: float = 0.0
        """Coefficient of the entropy bonus, per token."""

    options: Options

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        if not 0 < options.clip < 1:
            raise ValueError(f"algorithm.options.clip must be between 0 and 1, not {options.clip}.")
        if not 0 <= options.negative_scale <= 1:
            raise ValueError(f"algorithm.options.negative_scale must be in [0, 1], not {options.negative_scale}.")
        if options.kl < 0 or options.entropy < 0:
            raise ValueError("algorithm.options.kl and algorithm.options.entropy must not be negative.")
        self.needs_reference = options.kl > 0
        self.needs_full = options.kl > 0 and options.kl_kind == "exact"
        self._means = RunningMean()
        self._scale = RunningScale()

    def advantages(self, samples: Sequence[Sample]) -> NDArray[np.float64]:
        """Reward minus baseline, brought to a common scale.

        A sample alone with its prompt has no others to compare with, and a task in its first batch has no past; each
        then takes the other baseline, and 0 where there is neither.
        """
        rewards = np.array([sample.reward for sample in samples], dtype=np.float64)
        others = leave_one_out(rewards, [(sample.task, sample.group) for sample in samples])
        past = np.array([self._past(sample) for sample in samples], dtype=np.float64)
        first, second = (others, past) if self.options.baseline == "leave_one_out" else (past, others)
        result = np.nan_to_num(np.where(np.isnan(first), second, first), nan=0.0)
        for task in sorted({sample.task for sample in samples}):
            self._means.update(task, [sample.reward for sample in samples if sample.task == task])
        if self.options.normalise:
            result = self._scale.normalise(result)
        return shape_advantages(result, negative_scale=self.options.negative_scale, clip=self.options.advantage_clip)

    def loss(self, batch: TokenBatch) -> Loss:
        """Clipped surrogate, plus KL to the start policy, minus entropy."""
        options = self.options
        terms = [
            (
                1.0,
                ppo_clip(
                    batch.logprobs,
                    batch.behaviour,
                    batch.mask,
                    batch.advantages,
                    batch.weights,
                    clip=options.clip,
                    total_tokens=batch.total_tokens,
                ),
            ),
            (options.entropy, entropy_bonus(batch.entropy, batch.mask, total_tokens=batch.total_tokens)),
        ]
        if batch.full is not None and batch.reference_full is not None:
            divergence = exact_kl(batch.full, batch.reference_full, batch.mask, total_tokens=batch.total_tokens)
            terms.append((options.kl, divergence))
        elif batch.reference is not None:
            divergence = k3_kl(batch.logprobs, batch.reference, batch.mask, total_tokens=batch.total_tokens)
            terms.append((options.kl, divergence))
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

    def _past(self, sample: Sample) -> float:
        mean = self._means.get(sample.task)
        return float("nan") if mean is None else sample.reward - mean
