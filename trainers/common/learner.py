"""One update of the policy on one batch of samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from trainers.common.algorithm import Algorithm, TokenBatch
from trainers.common.config import AlgorithmConfig, WeightsConfig
from trainers.common.policy import Policy
from trainers.common.sample import Sample
from trainers.common.weigher import Weigher

__all__ = ["Learner"]


class Learner:
    """Turns samples into parameters: advantages, then weights, then the loss over micro-batches.

    Args:
        policy: Updated in place.
        algorithm: Gives advantages and loss.
        config: Optimiser settings.
        weights: How samples are weighed.
        reference: The start policy, frozen; needed when the algorithm asks for it.
    """

    def __init__(
        self,
        policy: Policy,
        algorithm: Algorithm,
        config: AlgorithmConfig,
        weights: WeightsConfig,
        reference: Policy | None = None,
    ) -> None:
        if algorithm.needs_reference and reference is None:
            raise ValueError(f"{type(algorithm).__name__} needs the start policy as a reference.")
        self.policy = policy
        self.algorithm = algorithm
        self.config = config
        self.weigher = Weigher(weights)
        self.ratios = np.zeros((0, 4))
        """Of the samples trained last, [B, 4]: tokens, those with a ratio outside the clip range, sum of the ratios, sum
        of their squares; the ratios are those of the policy before the update to the recorded behaviour."""
        self.reference = reference
        self.optimizer = torch.optim.AdamW(
            list(policy.parameters()), lr=config.learning_rate, betas=(0.9, 0.95), weight_decay=0.0
        )
        self._updates = 0

    def update(self, samples: Sequence[Sample], inclusion: ArrayLike | None = None) -> dict[str, float]:
        """Train on a batch; every sample has ``reward_valid`` and one common temperature.

        Args:
            samples: The batch.
            inclusion: [B] probability of each sample not to be dropped; the weight rule ``inclusion`` needs it.

        Returns:
            What to log.

        Raises:
            FloatingPointError: The loss or the gradient is not finite; the parameters are unchanged by that step.
        """
        if not samples or not all(sample.reward_valid for sample in samples):
            raise ValueError("A batch holds at least one sample and only valid ones.")
        odd = [sample.ticket for sample in samples if not math.isfinite(sample.reward)]
        if odd:
            raise ValueError(f"The rewards of tickets {odd} are not finite numbers.")
        advantages = self.algorithm.advantages(samples)
        if advantages.shape != (len(samples),) or not np.all(np.isfinite(advantages)):
            raise ValueError(f"{type(self.algorithm).__name__}.advantages must return {len(samples)} finite numbers.")
        weights = self.weigher.weigh(samples, inclusion)
        total = float(sum(len(sample.generation.response_ids) for sample in samples))
        parts = self._parts(samples)
        references = [self._reference([samples[i] for i in part]) for part in parts]
        drift = np.zeros(len(samples))
        self.ratios = np.zeros((len(samples), 4))
        metrics: dict[str, float] = {}
        self._updates += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate * min(1.0, self._updates / (self.config.warmup + 1))
        self.policy.model.train()
        for epoch in range(self.config.epochs):
            self.optimizer.zero_grad(set_to_none=True)
            logged: list[tuple[float, dict[str, float]]] = []
            for part, reference in zip(parts, references, strict=True):
                batch = self._token_batch(
                    [samples[i] for i in part], advantages[part], weights.values[part], total, reference
                )
                loss = self.algorithm.loss(batch)
                if epoch == 0:
                    drift[part] = _drift(batch)
                    self.ratios[part] = _ratios(batch, getattr(self.algorithm.options, "clip", 0.2))
                loss.value.backward()  # type: ignore[no-untyped-call]
                logged.append((float(batch.mask.sum()), {"loss": float(loss.value.detach()), **loss.statistics}))
            norm = torch.nn.utils.clip_grad_norm_(list(self.policy.parameters()), self.config.max_grad_norm)
            merged = _merge(logged)
            if not (math.isfinite(float(norm)) and math.isfinite(merged["loss"])):
                raise FloatingPointError(f"Loss {merged['loss']} or gradient norm {float(norm)} is not finite.")
            self.optimizer.step()
            merged["grad_norm"] = float(norm)
            # The first pass says how stale the data are, the last one how far the update went.
            metrics |= merged if epoch == 0 else {f"last_epoch_{key}": value for key, value in merged.items()}
        return metrics | {
            "advantage_mean": float(advantages.mean()),
            "advantage_std": float(advantages.std()),
            "weight_max": float(weights.values.max()),
            "weight_lost_mass": weights.lost_mass,
            "weight_effective": weights.effective,
            "weight_floored_share": weights.floored,
            "weight_capped_share": weights.capped,
            "weight_unsupported_share": weights.unsupported,
            "tokens": total,
            **_by_duration(drift, samples),
        }

    def _parts(self, samples: Sequence[Sample]) -> list[list[int]]:
        """Micro-batches of samples of similar length: padding is computed like any token."""
        order = sorted(range(len(samples)), key=lambda index: -len(samples[index].generation.response_ids))
        size = self.config.micro_batch or len(samples)
        return [order[start : start + size] for start in range(0, len(samples), size)]

    def state(self) -> dict[str, Any]:
        """Optimiser and algorithm; the policy's weights are saved apart."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "algorithm": self.algorithm.state(),
            "updates": self._updates,
            "weigher": self.weigher.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.algorithm.restore(state["algorithm"])
        self._updates = state["updates"]
        if "weigher" in state:
            self.weigher.restore(state["weigher"])

    def _score(self, policy: Policy, samples: Sequence[Sample]) -> Any:
        generations = [sample.generation for sample in samples]
        return policy.token_logprobs(
            [g.prompt_ids for g in generations],
            [g.response_ids for g in generations],
            temperature=_temperature(samples),
            full=self.algorithm.needs_full,
        )

    @torch.no_grad()
    def _reference(self, samples: Sequence[Sample]) -> Any:
        if not self.algorithm.needs_reference or self.reference is None:
            return None
        return self._score(self.reference, samples)

    def _token_batch(
        self,
        samples: Sequence[Sample],
        advantages: np.ndarray[Any, Any],
        weights: np.ndarray[Any, Any],
        total: float,
        reference: Any,
    ) -> TokenBatch:
        scored = self._score(self.policy, samples)
        device = scored.logprobs.device
        behaviour = torch.zeros_like(scored.logprobs)
        for row, sample in enumerate(samples):
            recorded = sample.generation.logprobs
            behaviour[row, : len(recorded)] = torch.tensor(recorded, dtype=behaviour.dtype, device=device)

        def vector(values: np.ndarray[Any, Any]) -> Tensor:
            return torch.tensor(values, dtype=scored.logprobs.dtype, device=device)

        return TokenBatch(
            logprobs=scored.logprobs,
            entropy=scored.entropy,
            behaviour=behaviour,
            reference=None if reference is None else reference.logprobs,
            full=scored.full,
            reference_full=None if reference is None else reference.full,
            mask=scored.mask,
            advantages=vector(advantages),
            weights=vector(weights),
            total_tokens=total,
        )


@torch.no_grad()
def _drift(batch: TokenBatch) -> np.ndarray[Any, Any]:
    """Mean distance between the policy and the recorded behaviour, per sample: |log ratio| over its tokens, [B]."""
    distance = torch.where(batch.mask.bool(), (batch.logprobs - batch.behaviour).abs(), 0.0)
    return (distance.sum(1) / batch.mask.sum(1).clamp(min=1)).cpu().double().numpy()


@torch.no_grad()
def _ratios(batch: TokenBatch, clip: float) -> np.ndarray[Any, Any]:
    """Tokens, clipped tokens, sum of the ratios and of their squares, per sample, [B, 4]."""
    kept = batch.mask.bool()
    ratio = torch.where(kept, batch.logprobs - batch.behaviour, 0.0).double().exp()
    outside = kept & ((ratio - 1).abs() > clip)
    ratio = torch.where(kept, ratio, 0.0)
    return torch.stack([kept.sum(1), outside.sum(1), ratio.sum(1), ratio.square().sum(1)], dim=1).cpu().numpy()


def _by_duration(drift: np.ndarray[Any, Any], samples: Sequence[Sample]) -> dict[str, float]:
    """Drift of the faster and of the slower half.

    A slow program is older when it is trained, so it drifts further and is clipped first: a bias against slow programs
    that no admission rule shows.
    """
    order = np.argsort([sample.duration for sample in samples], kind="stable")
    half = len(samples) // 2
    if not half:
        return {}
    return {"drift_fast": float(drift[order[:half]].mean()), "drift_slow": float(drift[order[-half:]].mean())}


def _temperature(samples: Sequence[Sample]) -> float:
    temperatures = {sample.generation.temperature for sample in samples}
    if len(temperatures) != 1:
        raise ValueError(f"Samples of one batch have different temperatures: {sorted(temperatures)}.")
    return temperatures.pop()


def _merge(logged: Sequence[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
    """Merge the statistics of micro-batches; their losses are shares of one mean and add up."""
    total = sum(tokens for tokens, _ in logged) or 1.0
    merged: dict[str, float] = {}
    for key in logged[0][1]:
        values = [statistics[key] for _, statistics in logged]
        if key in ("loss", "policy_loss"):
            merged[key] = sum(values)
        elif key.startswith("max_"):
            merged[key] = max(values)
        elif key.startswith("min_"):
            merged[key] = min(values)
        else:
            merged[key] = sum(tokens * value for (tokens, _), value in zip(logged, values, strict=True)) / total
    return merged
