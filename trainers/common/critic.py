"""A value head on the policy's last hidden state: what reward to expect before each token of a response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from trainers.common.policy import Policy

__all__ = ["Critic"]


class Critic:
    """Two layers on the last hidden state, in float32, with an optimiser of their own.

    No gradient runs into the policy: an error in what to expect must not change what is written. The value of a token
    is read where the token is predicted, so it knows the prompt and the tokens before, never the token itself, and
    taking it off the reward leaves the policy gradient unbiased.

    The first batch sets the output to its mean return. Rewards may be near -10, and steps from 0 to there would take
    longer than many runs.

    Args:
        policy: Gives width and device; any causal LM.
        learning_rate: Step size of AdamW.
        max_grad_norm: Gradients are scaled down to this norm.
    """

    def __init__(self, policy: Policy, *, learning_rate: float, max_grad_norm: float) -> None:
        width = policy.backbone.hidden_size
        last = nn.Linear(width, 1)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self._last = last
        self.head = nn.Sequential(nn.Linear(width, width), nn.Tanh(), last).to(policy.device)
        self.optimizer = torch.optim.AdamW(
            self.head.parameters(), lr=learning_rate, betas=(0.9, 0.95), weight_decay=0.0
        )
        self.max_grad_norm = max_grad_norm
        self._started = False

    def values(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Return values [B, T], 0 where ``mask`` [B, T] is False, of hidden states [B, T, H]."""
        values: Tensor = self.head(hidden.detach().float()).squeeze(-1)
        return torch.where(mask, values, values.new_zeros(()))

    def start(self, mean: float) -> bool:
        """Expect ``mean`` everywhere, once: later calls do nothing and return False."""
        if self._started:
            return False
        self._started = True
        with torch.no_grad():
            self._last.bias.fill_(mean)
        return True

    def step(self) -> float:
        """Take the step that the gradients say, clear them, and return their norm.

        Raises:
            FloatingPointError: The norm is not finite; nothing was changed.
        """
        norm = float(nn.utils.clip_grad_norm_(self.head.parameters(), self.max_grad_norm, error_if_nonfinite=False))
        if not norm < float("inf"):
            raise FloatingPointError(f"The critic's gradient norm {norm} is not finite.")
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm

    def state(self) -> dict[str, Any]:
        """Everything that the continuation depends on."""
        return {"head": self.head.state_dict(), "optimizer": self.optimizer.state_dict(), "started": self._started}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``."""
        self.head.load_state_dict(state["head"])
        self.optimizer.load_state_dict(state["optimizer"])
        self._started = state["started"]
