"""Bounded importance weights, and the drift that their bounds cause."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["ImportanceWeight", "centering_term"]

_TAIL = 1e-6
"""Smallest mass of the tokens outside the candidates; below it float32 sums say nothing."""


@dataclass(frozen=True, slots=True)
class ImportanceWeight:
    """A weight w = f(rho) of a token, rho = p / q, p the policy and q what sampled the token; no gradient runs through.

    ``masked`` False is truncated importance sampling, f(rho) = min(rho, high); True is masked importance sampling,
    f(rho) = rho where low <= rho <= high and 0 elsewhere. ``high`` may be infinite.
    """

    low: float = 0.0
    high: float = 2.0
    masked: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.low <= 1 <= self.high:
            raise ValueError(
                f"The bounds [{self.low}, {self.high}] of an importance weight must hold 1, the ratio of a fresh token."
            )

    def __call__(self, log_ratio: Tensor) -> Tensor:
        """Return f(exp(log_ratio)), without gradient, in the same shape."""
        log_ratio = log_ratio.detach()
        if not self.masked:
            return log_ratio.clamp(max=math.log(self.high)).exp()
        ratio = log_ratio.exp()
        return torch.where((ratio >= self.low) & (ratio <= self.high), ratio, ratio.new_zeros(()))

    def mass(self, log_p: Tensor, log_q: Tensor) -> Tensor:
        """Return q f(p / q), without gradient: min(p, high q) or p inside the bounds, so that no q is divided by."""
        log_p, log_q = log_p.detach(), log_q.detach()
        drawn = log_q > -math.inf
        log_q = torch.where(drawn, log_q, log_q.new_zeros(()))
        if not self.masked:
            mass = torch.minimum(log_p, log_q + math.log(self.high)).exp()
        else:
            ratio = (log_p - log_q).exp()
            mass = torch.where((ratio >= self.low) & (ratio <= self.high), log_p.exp(), log_p.new_zeros(()))
        return torch.where(drawn, mass, mass.new_zeros(()))


def centering_term(log_p: Tensor, log_q: Tensor, weight: ImportanceWeight, *, complete: bool) -> Tensor:
    """Return what score centering takes off each token's weighted log-probability (Marek & Ryabinin, arXiv 2609.20807).

    The gradient of the result is m = sum_v q_v w_v grad log p_v, the mean of the weighted score over the sampler's
    tokens. It is not 0 once f bounds the ratio: it pulls p towards q, or away from it, by as much as the advantages
    around it are off from 0. As sum_v p_v grad log p_v = 0, it is computed as sum_v (q_v w_v - alpha p_v) log p_v.

    - ``complete``: the candidates are all that could be drawn; alpha = 1, and the result is 0 where p = q.
    - else outside the candidates q is taken as proportional to p: with tail = (1 - sum q) / (1 - sum p) over the
      candidates, alpha = tail f(1 / tail).

    Args:
        log_p: [..., K] the policy's log-probabilities of the candidates, differentiable.
        log_q: [..., K] the sampler's, from its whole distribution; minus infinity where there is no candidate.
        weight: f.
        complete: Whether the candidates hold all of q's mass.

    Returns:
        [...]
    """
    with torch.no_grad():
        drawn = log_q > -math.inf
        p = torch.where(drawn, log_p.exp(), log_p.new_zeros(()))
        alpha = torch.ones_like(p[..., :1])
        if not complete:
            q_rest = (1 - log_q.exp().sum(-1, keepdim=True)).clamp(min=_TAIL)
            p_rest = (1 - p.sum(-1, keepdim=True)).clamp(min=_TAIL)
            tail = q_rest / p_rest
            alpha = tail * weight(-tail.log())
        coefficients = weight.mass(log_p, log_q) - alpha * p
    return (coefficients * torch.where(drawn, log_p, log_p.new_zeros(()))).sum(-1)
