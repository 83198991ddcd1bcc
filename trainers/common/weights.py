"""How much each sample counts in the policy loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["SampleWeights", "WeightRule", "sample_weights"]

WeightRule = Literal["none", "duration"]


@dataclass(frozen=True, slots=True)
class SampleWeights:
    """Weights of a batch."""

    values: NDArray[np.float64]
    """[B]; 0 for a masked sample. Sums to the number of valid samples less ``lost_mass``."""
    lost_mass: float
    """Mass that the cap cut off, in samples."""
    effective: float
    """Effective number of samples, (sum w)^2 / sum w^2 (Kish)."""


def sample_weights(
    durations: ArrayLike,
    valid: ArrayLike,
    *,
    rule: WeightRule = "duration",
    min_duration: float = 0.1,
    cap: float | None = None,
) -> SampleWeights:
    """Weigh samples by the time their program ran (arXiv 2509.01684, Eq. 3).

    ``duration``: w_i = max(dt_i, min_duration) / mean of the same over the valid samples of the batch. It undoes the
    selection n(a) ~ pi(a) / dt(a), where slow actions finish less often in a fixed time. Under a rule that drops
    nothing it is a bonus for slow actions instead. Weights multiply the advantage, so a baseline has to be taken off
    first.

    Args:
        durations: [B] seconds.
        valid: [B] False where the infrastructure failed; such samples are removed before anything else.
        rule: ``none`` or ``duration``.
        min_duration: Floor of a duration, seconds.
        cap: Largest weight; the mass above it is lost, not spread over the others.

    Raises:
        ValueError: A negative or non-finite duration of a valid sample, or shapes that differ.
    """
    mask = np.asarray(valid, dtype=bool)
    seconds = np.asarray(durations, dtype=np.float64)
    if seconds.shape != mask.shape or seconds.ndim != 1:
        raise ValueError(f"Durations {seconds.shape} and valid flags {mask.shape} must be vectors of one length.")
    if not np.all(np.isfinite(seconds[mask])) or np.any(seconds[mask] < 0):
        raise ValueError("Durations must be finite and not negative.")
    values = np.zeros(len(seconds))
    if not mask.any():
        return SampleWeights(values, 0.0, 0.0)
    if rule == "none":
        values[mask] = 1.0
    elif rule == "duration":
        floored = np.maximum(seconds[mask], min_duration)
        values[mask] = floored / floored.mean()
    else:
        raise ValueError(f"Unknown weight rule {rule!r}: use 'none' or 'duration'.")
    lost = 0.0
    if cap is not None:
        capped = np.minimum(values, cap)
        lost = float(values.sum() - capped.sum())
        values = capped
    return SampleWeights(values, lost, float(values.sum() ** 2 / np.square(values).sum()))
