"""A complete algorithm of one's own: REINFORCE (Williams 1992) with a running-mean baseline for each task.

Run it from the repository with ``mle-gym train --config recipes/demo.toml --algorithm examples.my_reinforce:Reinforce
--set "algorithm.options={decay=0.9}"``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.common import Algorithm, Loss, Sample, TokenBatch
from trainers.common.losses import token_mean

__all__ = ["Reinforce"]


class Reinforce(Algorithm):
    """Likelihood times (reward - baseline); meant for samples of the current policy, so keep the look-ahead low."""

    @dataclass(frozen=True)
    class Options:
        """What ``[algorithm.options]`` may hold."""

        decay: float = 0.9
        """Share of the old baseline kept per batch."""

    options: Options

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.means: dict[str, float] = {}

    def advantages(self, samples: Sequence[Sample]) -> NDArray[np.float64]:
        """Reward minus the mean of earlier batches of the same task; in a task's first batch, minus that batch's."""
        rewards = {task: [s.reward for s in samples if s.task == task] for task in {s.task for s in samples}}
        now = {task: float(np.mean(values)) for task, values in rewards.items()}
        advantages = np.array([s.reward - self.means.get(s.task, now[s.task]) for s in samples])
        for task, mean in now.items():
            self.means[task] = self.options.decay * self.means.get(task, mean) + (1 - self.options.decay) * mean
        return advantages

    def loss(self, batch: TokenBatch) -> Loss:
        """Policy gradient; the sample weights (durations, say) come on top of the advantages."""
        gain = batch.logprobs * (batch.advantages * batch.weights).unsqueeze(1)
        value = -token_mean(gain, batch.mask, batch.total_tokens)
        return Loss(value, {"policy_loss": float(value.detach())})

    def state(self) -> dict[str, Any]:
        """The baselines: a resumed run goes on with them."""
        return {"means": self.means}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``."""
        self.means = dict(state["means"])
