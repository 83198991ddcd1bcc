"""The options of the reference algorithm, and the combinations that cannot be right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trainers.common.config import TrainConfig
from trainers.common.importance import ImportanceWeight

__all__ = ["PPOOptions"]


@dataclass(frozen=True)
class PPOOptions:
    """What ``[algorithm.options]`` may hold for ``async_ppo``."""

    correction: Literal["ppo_clip", "decoupled_ppo", "truncated_is", "masked_is"] = "ppo_clip"
    """How the difference between the policy and what sampled a token enters the loss."""
    clip: float = 0.2
    """ppo_clip, decoupled_ppo: epsilon of the clipped ratio."""
    behaviour_cap: float | None = None
    """decoupled_ppo: largest ratio of the policy at the start of the update to the sampler."""
    cap: float = 2.0
    """truncated_is: largest ratio of the policy to the sampler; inf truncates nothing."""
    mask_low: float = 0.5
    """masked_is: tokens with a smaller ratio do not count ..."""
    mask_high: float = 5.0
    """... nor those with a larger one."""
    centering: Literal["none", "full", "top_k"] = "none"
    """truncated_is, masked_is: take off the mean of the weighted score, over the whole vocabulary (small models) or
    over the candidates that were recorded (generation.record, 128 in the paper)."""
    baseline: Literal["leave_one_out", "running_mean", "critic"] = "leave_one_out"
    """Others with the same prompt in the batch, earlier batches of the same task, or a value for each token."""
    gamma: float = 1.0
    """critic: discount per token."""
    lam: float = 1.0
    """critic: lambda of generalised advantage estimation; 1 is reward less value."""
    value_clip: float | None = 0.5
    """critic: how far a value may profitably move in one update."""
    normalise: bool = True
    """Divide advantages by their running root mean square."""
    group_std: bool = False
    """leave_one_out: divide advantages by the standard deviation of the rewards of their group, as GRPO does."""
    sequence_mean: bool = False
    """Divide each response's loss by its own length, not by the mean length, as GRPO does."""
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

    def __post_init__(self) -> None:
        self._check_ranges()
        self._check_combinations()

    @property
    def weight(self) -> ImportanceWeight:
        """The weight of a token under truncated_is or masked_is."""
        if self.correction == "masked_is":
            return ImportanceWeight(self.mask_low, self.mask_high, masked=True)
        return ImportanceWeight(high=self.cap)

    def check(self, config: TrainConfig) -> None:
        """Refuse a sampling that does not record what score centering reads.

        Raises:
            ValueError: One sentence says why and what to change.
        """
        record = config.generation.record
        if self.centering == "full" and record != -1:
            raise ValueError(
                "algorithm.options.centering = 'full' sums over every token that could have been drawn, so all of them "
                "must be recorded: set generation.record to -1."
            )
        if self.centering == "top_k" and record < 1:
            raise ValueError(
                "algorithm.options.centering = 'top_k' sums over the likeliest tokens as they were at sampling, so "
                "they must be recorded: set generation.record to their number, such as 128."
            )

    def _check_ranges(self) -> None:
        if not 0 < self.clip < 1:
            raise ValueError(f"algorithm.options.clip must be between 0 and 1, not {self.clip}.")
        if self.behaviour_cap is not None and not self.behaviour_cap >= 1:
            raise ValueError(
                f"algorithm.options.behaviour_cap must be 1, the ratio of a fresh token, or more, not "
                f"{self.behaviour_cap}."
            )
        if not self.cap >= 1:
            raise ValueError(f"algorithm.options.cap must be 1, the ratio of a fresh token, or more, not {self.cap}.")
        if not 0 <= self.mask_low <= 1 <= self.mask_high:
            raise ValueError(
                "algorithm.options.mask_low and mask_high must hold 1, the ratio of a fresh token, between them, "
                f"unlike {self.mask_low} and {self.mask_high}."
            )
        for name, value in (("gamma", self.gamma), ("lam", self.lam), ("negative_scale", self.negative_scale)):
            if not 0 <= value <= 1:
                raise ValueError(f"algorithm.options.{name} must be in [0, 1], not {value}.")
        if self.value_clip is not None and not self.value_clip > 0:
            raise ValueError(f"algorithm.options.value_clip must be above 0, not {self.value_clip}.")
        if self.kl < 0 or self.entropy < 0:
            raise ValueError("algorithm.options.kl and algorithm.options.entropy must not be negative.")

    def _check_combinations(self) -> None:
        if self.group_std and self.baseline != "leave_one_out":
            raise ValueError(
                f"algorithm.options.group_std divides by the spread within a group, and baseline = {self.baseline!r} "
                "compares with no group: use baseline = 'leave_one_out', or leave group_std out."
            )
        if self.centering == "none":
            return
        if self.correction in ("ppo_clip", "decoupled_ppo"):
            raise ValueError(
                f"Score centering takes off the mean of a fixed weight of p / q, and the clip of {self.correction} is "
                "none, because it depends on the advantage's sign: use correction = 'truncated_is' or 'masked_is'."
            )
        if self.group_std:
            raise ValueError(
                "Score centering leaves an unbiased gradient only while advantages are on one scale, and "
                "algorithm.options.group_std gives every group a random one: set it to false."
            )
        if self.sequence_mean:
            raise ValueError(
                "Score centering needs a factor that is known before a token is drawn, and a response's length, by "
                "which algorithm.options.sequence_mean divides, is not and so acts as a reward: set it to false."
            )
