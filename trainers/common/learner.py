"""One update of the policy on one batch of samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from trainers.common.algorithm import Algorithm, TokenBatch
from trainers.common.config import AlgorithmConfig, WeightsConfig
from trainers.common.critic import Critic
from trainers.common.policy import Policy
from trainers.common.sample import Sample
from trainers.common.scoring import score, written
from trainers.common.token_logprobs import TokenLogprobs
from trainers.common.weigher import Weigher

__all__ = ["Learner"]


@dataclass(frozen=True)
class _Start:
    """What is known of a batch before its first step; T is its longest response."""

    advantages: np.ndarray[Any, Any]
    """[B], or [B, T] with a critic."""
    proximal: Tensor | None = None
    """[B, T]"""
    values: Tensor | None = None
    """[B, T]"""
    returns: np.ndarray[Any, Any] | None = None
    """[B, T]"""


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
        self.treatment = np.zeros((0, 5))
        """Of the samples trained last, [B, 5]: weight, tokens, those with a ratio outside the clip range, sum of the
        ratios, sum of their squares; the ratios are the policy before the update over the recorded behaviour."""
        self.reference = reference
        self.optimizer = torch.optim.AdamW(
            list(policy.parameters()), lr=config.learning_rate, betas=(0.9, 0.95), weight_decay=0.0
        )
        self.critic: Critic | None = None
        if algorithm.needs_values:
            self.critic = Critic(policy, learning_rate=config.critic_learning_rate, max_grad_norm=config.max_grad_norm)
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
        parts = self._parts(samples)
        start = self._start(samples, parts)
        advantages = start.advantages
        weights = self.weigher.weigh(samples, inclusion)
        total = float(sum(len(sample.generation.response_ids) for sample in samples))
        references = [self._reference([samples[i] for i in part]) for part in parts]
        drift = np.zeros(len(samples))
        self.treatment = np.zeros((len(samples), 5))
        self.treatment[:, 0] = weights.values
        metrics: dict[str, float] = {}
        self._updates += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate * min(1.0, self._updates / (self.config.warmup + 1))
        self.policy.model.train()
        for epoch in range(self.config.epochs):
            self.optimizer.zero_grad(set_to_none=True)
            if self.critic is not None:
                self.critic.optimizer.zero_grad(set_to_none=True)
            logged: list[tuple[float, dict[str, float]]] = []
            for part, reference in zip(parts, references, strict=True):
                batch = self._token_batch(samples, part, start, weights.values[part], total, reference)
                loss = self.algorithm.loss(batch)
                if epoch == 0:
                    drift[part] = _drift(batch)
                    self.treatment[part, 1:] = _ratios(batch, getattr(self.algorithm.options, "clip", 0.2))
                loss.value.backward()  # type: ignore[no-untyped-call]
                logged.append((float(batch.mask.sum()), {"loss": float(loss.value.detach()), **loss.statistics}))
            norm = torch.nn.utils.clip_grad_norm_(list(self.policy.parameters()), self.config.max_grad_norm)
            merged = _merge(logged)
            if not (math.isfinite(float(norm)) and math.isfinite(merged["loss"])):
                raise FloatingPointError(f"Loss {merged['loss']} or gradient norm {float(norm)} is not finite.")
            if self.critic is not None:
                merged["critic_grad_norm"] = self.critic.step()
            self.optimizer.step()
            merged["grad_norm"] = float(norm)
            # The first pass says how stale the data are, the last one how far the update went.
            metrics |= merged if epoch == 0 else {f"last_epoch_{key}": value for key, value in merged.items()}
        if start.values is not None:
            tokens = written(samples)
            metrics |= _explained(start, tokens)
            advantages = advantages[tokens]
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
        state = {
            "optimizer": self.optimizer.state_dict(),
            "algorithm": self.algorithm.state(),
            "updates": self._updates,
            "weigher": self.weigher.state(),
        }
        return state if self.critic is None else {**state, "critic": self.critic.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.algorithm.restore(state["algorithm"])
        self._updates = state["updates"]
        if "weigher" in state:
            self.weigher.restore(state["weigher"])
        if self.critic is not None:
            self.critic.restore(state["critic"])

    def _start(self, samples: Sequence[Sample], parts: Sequence[Sequence[int]]) -> _Start:
        """Advantages, and what they and the loss need of the policy as it is before the first step."""
        name, tokens = type(self.algorithm).__name__, written(samples)
        proximal = torch.zeros(tokens.shape, device=self.policy.device) if self.algorithm.needs_proximal else None
        values = None if self.critic is None else torch.zeros(tokens.shape, device=self.policy.device)
        if proximal is not None or values is not None:
            self.policy.model.eval()
            for part in parts:
                with torch.no_grad():
                    scored, _ = score(self.policy, [samples[i] for i in part], hidden=values is not None)
                    width = scored.mask.shape[1]
                    if proximal is not None:
                        proximal[part, :width] = scored.logprobs
                    found = self._values(scored)
                    if values is not None and found is not None:
                        values[part, :width] = found
        if self.critic is None or values is None:
            advantages = self.algorithm.advantages(samples)
            if advantages.shape != (len(samples),) or not np.all(np.isfinite(advantages)):
                raise ValueError(f"{name}.advantages must return {len(samples)} finite numbers.")
            return _Start(advantages, proximal)
        if self.critic.start(float(np.mean([sample.reward for sample in samples]))):
            return self._start(samples, parts)
        advantages, returns = self.algorithm.token_advantages(samples, values.cpu().double().numpy(), tokens)
        for result in (advantages, returns):
            if result.shape != tokens.shape or not np.all(np.isfinite(result)):
                raise ValueError(f"{name}.token_advantages must return two arrays of {tokens.shape} finite numbers.")
        return _Start(advantages, proximal, values, returns)

    def _values(self, scored: TokenLogprobs) -> Tensor | None:
        """The critic's values, differentiable, [B, T]."""
        if self.critic is None or scored.hidden is None:
            return None
        return self.critic.values(scored.hidden, scored.mask)

    @torch.no_grad()
    def _reference(self, samples: Sequence[Sample]) -> Any:
        if not self.algorithm.needs_reference or self.reference is None:
            return None
        return score(self.reference, samples, full=self.algorithm.needs_full)[0]

    def _token_batch(
        self,
        batch: Sequence[Sample],
        part: Sequence[int],
        start: _Start,
        weights: np.ndarray[Any, Any],
        total: float,
        reference: Any,
    ) -> TokenBatch:
        samples = [batch[i] for i in part]
        scored, others = score(
            self.policy,
            samples,
            full=self.algorithm.needs_full,
            candidates=self.algorithm.needs_candidates,
            hidden=self.critic is not None,
        )
        device, width = scored.logprobs.device, scored.mask.shape[1]
        behaviour = torch.zeros_like(scored.logprobs)
        for row, sample in enumerate(samples):
            recorded = sample.generation.logprobs
            behaviour[row, : len(recorded)] = torch.tensor(recorded, dtype=behaviour.dtype, device=device)

        def vector(values: np.ndarray[Any, Any]) -> Tensor:
            return torch.tensor(values, dtype=scored.logprobs.dtype, device=device)

        def rows(values: Any) -> Any:
            return values[part] if values.ndim == 1 else values[part, :width]

        return TokenBatch(
            logprobs=scored.logprobs,
            entropy=scored.entropy,
            behaviour=behaviour,
            reference=None if reference is None else reference.logprobs,
            full=scored.full,
            reference_full=None if reference is None else reference.full,
            mask=scored.mask,
            advantages=vector(rows(start.advantages)),
            weights=vector(weights),
            total_tokens=total,
            proximal=None if start.proximal is None else rows(start.proximal),
            values=self._values(scored),
            old_values=None if start.values is None else rows(start.values),
            returns=None if start.returns is None else vector(rows(start.returns)),
            candidates=None if others is None else scored.candidates,
            behaviour_candidates=None if others is None else others.logprobs,
            complete=others is not None and others.complete,
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


def _explained(start: _Start, tokens: np.ndarray[Any, Any]) -> dict[str, float]:
    """What the critic said of a batch before it learned from it; explaining nothing is 0, everything is 1."""
    assert start.values is not None
    assert start.returns is not None
    said, target = start.values.cpu().double().numpy()[tokens], start.returns[tokens]
    variance = float(target.var())
    return {
        "value_mean": float(said.mean()),
        "return_mean": float(target.mean()),
        "explained_variance": 1.0 - float((target - said).var()) / variance if variance > 0 else 0.0,
    }


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
