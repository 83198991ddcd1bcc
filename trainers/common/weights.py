"""How much each sample counts in the policy loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["LEAST_INCLUSION", "SampleWeights", "WeightRule", "sample_weights"]

WeightRule = Literal["none", "duration", "inclusion"]

LEAST_INCLUSION = 0.05
"""A sample that is less likely than this to escape being dropped is unsupported: it counts as if it were this likely,
and no claim is made that the weights undo the selection."""


@dataclass(frozen=True, slots=True)
class SampleWeights:
    """Weights of a batch."""

    values: NDArray[np.float64]
    """[B]; 0 for a masked sample. Sums to the number of valid samples less ``lost_mass``."""
    lost_mass: float
    """Mass that the cap cut off, in samples."""
    effective: float
    """Effective number of samples, (sum w)^2 / sum w^2 (Kish)."""
    floored: float = 0.0
    """Share of the valid samples whose duration was raised to the floor."""
    capped: float = 0.0
    """Share of the valid samples whose weight was cut to the cap."""
    unsupported: float = 0.0
    """Share of the valid samples that are less likely than ``LEAST_INCLUSION`` to escape being dropped."""


def sample_weights(
    durations: ArrayLike,
    valid: ArrayLike,
    *,
    rule: WeightRule = "duration",
    min_duration: float = 0.1,
    cap: float | None = None,
    scale: ArrayLike | None = None,
    inclusion: ArrayLike | None = None,
) -> SampleWeights:
    """Weigh samples by the time their program ran, or by how likely they were to get here.

    ``duration`` (arXiv 2509.01684, Eq. 3): w_i = max(dt_i, min_duration) / mean of the same over the valid samples of
    the batch. It undoes the selection n(a) ~ pi(a) / dt(a), where slow actions finish less often in a fixed time. Under
    a rule that drops nothing it is a bonus for slow actions instead.

    ``inclusion``: w_i = (1 / G_i) / mean of the same, with G_i the probability that a sample of that age has not been
    dropped (Horvitz and Thompson 1952, in Hajek's normalised form). It undoes the dropping, and is 1 where nothing was
    dropped.

    Weights multiply the advantage, so a baseline has to be taken off first.

    Args:
        durations: [B] seconds.
        valid: [B] False where the infrastructure failed; such samples are removed before anything else.
        rule: ``none``, ``duration`` or ``inclusion``.
        min_duration: Floor of a duration, seconds.
        cap: Largest weight; the mass above it is lost, not spread over the others.
        scale: [B] what each floored duration is divided by before the batch's mean is; None is 1.
        inclusion: [B] G, in [0, 1].

    Raises:
        ValueError: A negative or non-finite duration of a valid sample, shapes that differ, or no ``inclusion`` where
            the rule needs it.
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
    floored = unsupported = 0.0
    if rule == "none":
        values[mask] = 1.0
    elif rule == "duration":
        raised = np.maximum(seconds[mask], min_duration)
        floored = float(np.mean(seconds[mask] < min_duration))
        if scale is not None:
            raised = raised / _vector("scale", scale, mask)
        values[mask] = raised / raised.mean()
    elif rule == "inclusion":
        if inclusion is None:
            raise ValueError("The rule 'inclusion' needs the probability of each sample not to be dropped.")
        likely = _vector("inclusion", inclusion, mask)
        unsupported = float(np.mean(likely < LEAST_INCLUSION))
        inverse = 1.0 / np.maximum(likely, LEAST_INCLUSION)
        values[mask] = inverse / inverse.mean()
    else:
        raise ValueError(f"Unknown weight rule {rule!r}: use 'none', 'duration' or 'inclusion'.")
    lost = over = 0.0
    if cap is not None:
        capped = np.minimum(values, cap)
        lost = float(values.sum() - capped.sum())
        over = float(np.mean(values[mask] > cap))
        values = capped
    effective = float(values.sum() ** 2 / np.square(values).sum())
    return SampleWeights(values, lost, effective, floored, over, unsupported)


def _vector(name: str, values: ArrayLike, mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Numbers of the valid samples."""
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != mask.shape or not np.all(vector[mask] >= 0):
        raise ValueError(f"{name} must be {len(mask)} numbers of at least 0.")
    return vector[mask]
