"""Token-level losses on recorded behaviour log-probabilities, with the statistics that say whether they are healthy."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from trainers.common.importance import ImportanceWeight

__all__ = [
    "Loss",
    "decoupled_ppo",
    "entropy_bonus",
    "exact_kl",
    "k3_kl",
    "ppo_clip",
    "token_mean",
    "value_loss",
    "weighted_reinforce",
]


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
        advantages: [B] or [B, T].
        weights: [B].
        clip: Epsilon.
        total_tokens: Response tokens in the whole batch.
    """
    kept = mask.bool()
    log_ratio = torch.where(kept, logprobs - behaviour, logprobs.new_zeros(()))
    ratio = log_ratio.exp()
    advantage = _column(advantages, logprobs)
    plain = ratio * advantage
    clipped = ratio.clamp(1 - clip, 1 + clip) * advantage
    objective = torch.minimum(plain, clipped) * _column(weights, logprobs)
    value = -token_mean(objective, mask, total_tokens)
    with torch.no_grad():
        count = kept.sum().clamp(min=1)
        active = ((clipped < plain) & kept).sum() / count
        outside = (((ratio - 1).abs() > clip) & kept).sum() / count
        statistics = {
            "policy_loss": float(value.detach()),
            "clip_share": float(outside),
            "clip_active_share": float(active),
            **_ratio_statistics(log_ratio, kept),
        }
    return Loss(value, statistics)


def decoupled_ppo(
    logprobs: Tensor,
    proximal: Tensor,
    behaviour: Tensor,
    mask: Tensor,
    advantages: Tensor,
    weights: Tensor,
    *,
    clip: float,
    cap: float | None = None,
    total_tokens: float,
) -> Loss:
    """PPO whose trust region is not the sampler's (Hilton et al. 2022, arXiv 2110.00641, Eq. 2, token by token).

    (pi_proximal / pi_behaviour) * min(r A, clip(r, 1 - eps, 1 + eps) A), r = pi_theta / pi_proximal. The proximal
    policy is the one at the start of the update, so an old sample is reweighted for its age, and clipped only for how
    far this update moves.

    Args:
        logprobs: [B, T], differentiable.
        proximal: [B, T] under the policy at the start of the update.
        behaviour: [B, T] as recorded at sampling.
        mask: [B, T].
        advantages: [B] or [B, T].
        weights: [B].
        clip: Epsilon.
        cap: Largest pi_proximal / pi_behaviour; None leaves it as it is.
        total_tokens: Response tokens in the whole batch.
    """
    kept = mask.bool()
    log_age = torch.where(kept, proximal - behaviour, proximal.new_zeros(())).detach()
    age = log_age.exp() if cap is None else log_age.exp().clamp(max=cap)
    # min(r A, clip(r) A) scales with A, so the factor may sit in the advantage.
    scaled = age * _column(advantages, logprobs)
    loss = ppo_clip(logprobs, proximal, mask, scaled, weights, clip=clip, total_tokens=total_tokens)
    behind = _ratio_statistics(log_age, kept)
    statistics = {
        "behaviour_kl": behind["approx_kl"],
        "max_behaviour_ratio": behind["max_ratio"],
        "min_behaviour_ratio": behind["min_ratio"],
        "behaviour_ess_share": behind["ess_share"],
    }
    return Loss(loss.value, loss.statistics | statistics)


def weighted_reinforce(
    logprobs: Tensor,
    behaviour: Tensor,
    mask: Tensor,
    advantages: Tensor,
    weights: Tensor,
    *,
    weight: ImportanceWeight,
    centering: Tensor | None = None,
    total_tokens: float,
) -> Loss:
    """REINFORCE with bounded importance weights: -A (f(p / q) log p - centering) for every token.

    Args:
        logprobs: [B, T] log p, differentiable.
        behaviour: [B, T] log q as recorded at sampling.
        mask: [B, T].
        advantages: [B] or [B, T].
        weights: [B].
        weight: f, which takes no gradient.
        centering: [B, T] from :func:`trainers.common.importance.centering_term`; None for no score centering.
        total_tokens: Response tokens in the whole batch.
    """
    kept = mask.bool()
    log_ratio = torch.where(kept, logprobs - behaviour, logprobs.new_zeros(())).detach()
    bounded = weight(log_ratio)
    score = bounded * torch.where(kept, logprobs, logprobs.new_zeros(()))
    if centering is not None:
        score = score - torch.where(kept, centering, centering.new_zeros(()))
    objective = score * _column(advantages, logprobs) * _column(weights, logprobs)
    value = -token_mean(objective, mask, total_tokens)
    ratio = log_ratio.exp()
    outside = (ratio > weight.high) | ((ratio < weight.low) if weight.masked else torch.zeros_like(kept))
    statistics = {
        "policy_loss": float(value.detach()),
        "clip_share": float((outside & kept).sum() / kept.sum().clamp(min=1)),
        "weight_mean": float((bounded * kept).sum() / kept.sum().clamp(min=1)),
        **_ratio_statistics(log_ratio, kept),
    }
    return Loss(value, statistics)


def value_loss(
    values: Tensor,
    old_values: Tensor,
    returns: Tensor,
    mask: Tensor,
    *,
    clip: float | None = None,
    total_tokens: float,
) -> Loss:
    """Half the squared error of a critic at every token; never below that of values moved by at most ``clip``.

    Args:
        values: [B, T], differentiable.
        old_values: [B, T] at the start of the update.
        returns: [B, T] targets.
        mask: [B, T].
        clip: Distance from the old value past which a better value earns nothing more; None for no clipping.
        total_tokens: Response tokens in the whole batch.
    """
    error = (values - returns).square()
    if clip is not None:
        near = old_values + (values - old_values).clamp(-clip, clip)
        error = torch.maximum(error, (near - returns).square())
    value = 0.5 * token_mean(error, mask, total_tokens)
    return Loss(value, {"value_loss": _per_token(value, mask, total_tokens)})


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


def _column(values: Tensor, like: Tensor) -> Tensor:
    """Bring numbers per sample [B] into the shape of numbers per token; those per token [B, T] stay as they are."""
    values = values.to(like.dtype)
    return values.unsqueeze(1) if values.dim() == 1 else values


def _ratio_statistics(log_ratio: Tensor, kept: Tensor) -> dict[str, float]:
    """How far two policies are apart on the kept tokens; ``log_ratio`` is 0 on the others."""
    log_ratio = log_ratio.detach()
    ratio = log_ratio.exp()
    count = kept.sum().clamp(min=1)
    ratios = ratio[kept]
    return {
        "approx_kl": float(((ratio - 1) - log_ratio).sum() / count),
        "max_ratio": float(ratios.max()) if ratios.numel() else 1.0,
        "min_ratio": float(ratios.min()) if ratios.numel() else 1.0,
        "ess_share": float(ratios.sum() ** 2 / (ratios.square().sum() * count)) if ratios.numel() else 1.0,
    }


def _per_token(value: Tensor, mask: Tensor, total_tokens: float) -> float:
    """A micro-batch's mean over its own tokens, from its share of the batch's mean."""
    return float(value.detach()) * total_tokens / max(1.0, float(mask.sum()))
