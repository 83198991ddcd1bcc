"""Token-level losses on recorded behaviour log-probabilities, with the statistics that say whether they are healthy."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

__all__ = ["Loss", "entropy_bonus", "exact_kl", "k3_kl", "ppo_clip", "token_mean"]


@dataclass(frozen=True, slots=True)
class Loss:
    """A scalar to differentiate and what to log about it."""

    value: Tensor
    """[]"""
    statistics: dict[str, float] = field(default_factory=dict)
    """Detached numbers. Over micro-batches, names that start with ``max_`` and ``min_`` are merged by maximum and
    minimum, all others by the mean over tokens."""


def token_mean(values: Tensor, mask: Tensor, total_tokens: float) -> Tensor:
    """Sum over the masked tokens divided by the token count of the *whole* batch.

    Dividing by each response's own length would make long responses cheap; dividing by a micro-batch's count would make
    the result depend on how the batch is split.

    Args:
        values: [B, T].
        mask: [B, T], 1 for a response token.
        total_tokens: Response tokens in the whole batch.
    """
    # torch.where, not a product: nan * 0 is nan, and padding may hold anything.
    return torch.where(mask.bool(), values, values.new_zeros(())).sum() / total_tokens


def ppo_clip(
    logprobs: Tensor,
    behaviour: Tensor,
    mask: Tensor,
    advantages: Tensor,
    weights: Tensor,
    *,
    clip: float,
    total_tokens: float,
) -> Loss:
    """Clipped surrogate of PPO (Schulman et al. 2017, Eq. 7) for every token, weighted per sample.

    ratio_t = exp(log pi_theta(y_t) - log pi_behaviour(y_t)), with the behaviour's log-probability as recorded when the
    token was sampled, so a sample may be of any age. The weight multiplies the whole clipped term (arXiv 2509.01684,
    Eq. 3) and does not move the clip range.

    Args:
        logprobs: [B, T], differentiable.
        behaviour: [B, T].
        mask: [B, T].
        advantages: [B].
        weights: [B].
        clip: Epsilon.
        total_tokens: Response tokens in the whole batch.
    """
    kept = mask.bool()
    log_ratio = torch.where(kept, logprobs - behaviour, logprobs.new_zeros(()))
    ratio = log_ratio.exp()
    advantage = advantages.to(logprobs.dtype).unsqueeze(1)
    plain = ratio * advantage
    clipped = ratio.clamp(1 - clip, 1 + clip) * advantage
    objective = torch.minimum(plain, clipped) * weights.to(logprobs.dtype).unsqueeze(1)
    value = -token_mean(objective, mask, total_tokens)
    with torch.no_grad():
        count = kept.sum().clamp(min=1)
        ratios = ratio[kept]
        active = ((clipped < plain) & kept).sum() / count
        outside = (((ratio - 1).abs() > clip) & kept).sum() / count
        statistics = {
            "policy_loss": float(value.detach()),
            "clip_share": float(outside),
            "clip_active_share": float(active),
            "approx_kl": float(((ratio - 1) - log_ratio).sum() / count),
            "max_ratio": float(ratios.max()) if ratios.numel() else 1.0,
            "min_ratio": float(ratios.min()) if ratios.numel() else 1.0,
            "ess_share": float(ratios.sum() ** 2 / (ratios.square().sum() * count)) if ratios.numel() else 1.0,
        }
    return Loss(value, statistics)


def k3_kl(logprobs: Tensor, reference: Tensor, mask: Tensor, *, total_tokens: float) -> Loss:
    """KL(pi || reference) per token, estimated on the sampled tokens by r - 1 - log r, r = reference / pi.

    Unbiased in value for samples of pi and never negative. Its gradient is that of KL(reference || pi) instead, which
    also pulls back to the reference.

    Args:
        logprobs: [B, T], differentiable.
        reference: [B, T] log-probabilities of the same tokens under the start policy.
        mask: [B, T].
        total_tokens: Response tokens in the whole batch.
    """
    log_r = torch.where(mask.bool(), reference - logprobs, logprobs.new_zeros(()))
    value = token_mean(log_r.exp() - 1 - log_r, mask, total_tokens)
    return Loss(value, {"kl": _per_token(value, mask, total_tokens)})


def exact_kl(log_policy: Tensor, log_reference: Tensor, mask: Tensor, *, total_tokens: float) -> Loss:
    """KL(pi || reference) per token, summed over the vocabulary; for small models, where the logits fit.

    Args:
        log_policy: [B, T, V] log-probabilities, differentiable.
        log_reference: [B, T, V].
        mask: [B, T].
        total_tokens: Response tokens in the whole batch.
    """
    per_token = (log_policy.exp() * (log_policy - log_reference)).sum(-1)
    value = token_mean(per_token, mask, total_tokens)
    return Loss(value, {"kl": _per_token(value, mask, total_tokens)})


def entropy_bonus(entropy: Tensor, mask: Tensor, *, total_tokens: float) -> Loss:
    """Minus the mean entropy per token: adding it to a loss rewards entropy.

    Args:
        entropy: [B, T] nats, differentiable.
        mask: [B, T].
        total_tokens: Response tokens in the whole batch.
    """
    value = -token_mean(entropy, mask, total_tokens)
    return Loss(value, {"entropy": -_per_token(value, mask, total_tokens)})


def _per_token(value: Tensor, mask: Tensor, total_tokens: float) -> float:
    """A micro-batch's mean over its own tokens, from its share of the batch's mean."""
    return float(value.detach()) * total_tokens / max(1.0, float(mask.sum()))
