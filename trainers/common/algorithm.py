"""What an RL algorithm is to the trainer: advantages and a loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from trainers.common.config import TrainConfig
from trainers.common.losses import Loss
from trainers.common.sample import Sample

__all__ = ["Algorithm", "AlgorithmNotFound", "Bools", "Floats", "TokenBatch", "find_algorithm"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

GROUP = "mle_gym.algorithms"
_BUILT_IN = {"async_ppo": "trainers.async_ppo.algorithm:AsyncPPO"}


class AlgorithmNotFound(LookupError):
    """No algorithm has this name; the message says which there are."""


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """What a loss sees of a (micro-)batch; B samples, T response tokens, right-padded."""

    logprobs: Tensor
    """[B, T] under the current policy at the sampling temperature, differentiable."""
    entropy: Tensor
    """[B, T] nats, differentiable."""
    behaviour: Tensor
    """[B, T] as recorded at sampling."""
    reference: Tensor | None
    """[B, T] under the start policy; None unless ``needs_reference``."""
    full: Tensor | None
    """[B, T, V] log-probabilities under the current policy, differentiable; None unless ``needs_full``."""
    reference_full: Tensor | None
    """[B, T, V] under the start policy; None unless ``needs_reference`` and ``needs_full``."""
    mask: Tensor
    """[B, T], 1 for a response token."""
    advantages: Tensor
    """[B], or [B, T] where ``needs_values``."""
    weights: Tensor
    """[B]"""
    total_tokens: float
    """Response tokens in the whole batch: divide sums by it."""
    proximal: Tensor | None = None
    """[B, T] under the policy at the start of the update; None unless ``needs_proximal``."""
    values: Tensor | None = None
    """[B, T] the critic's, differentiable; None, like the next two, unless ``needs_values``."""
    old_values: Tensor | None = None
    """[B, T] the critic's at the start of the update."""
    returns: Tensor | None = None
    """[B, T] the critic's targets."""
    candidates: Tensor | None = None
    """[B, T, K] log-probabilities of the recorded candidates under the current policy, differentiable; None, like the
    next one, unless ``needs_candidates``."""
    behaviour_candidates: Tensor | None = None
    """[B, T, K] as recorded at sampling; minus infinity where there is no candidate."""
    complete: bool = False
    """Whether nothing but the candidates could have been drawn."""


class Algorithm(ABC):
    """Base class of plug-ins.

    A subclass defines ``Options`` (a frozen dataclass: the keys and types that ``[algorithm.options]`` may hold),
    ``advantages`` and ``loss``. It is found by import path (``package.module:Class``) or by a name in the entry-point
    group ``mle_gym.algorithms``. State that must survive a restart goes through ``state`` and ``restore``.

    Args:
        options: An instance of the class's ``Options``.
    """

    @dataclass(frozen=True)
    class Options:
        """No options."""

    def __init__(self, options: Any) -> None:
        self.options = options

    needs_reference: bool = False
    """True when the loss reads the start policy's log-probabilities; costs a forward pass per batch."""
    needs_full: bool = False
    """True when the loss reads whole distributions: B x T x V floats, for small vocabularies."""
    needs_proximal: bool = False
    """True when the loss reads the log-probabilities of the policy at the start of the update; costs a forward pass."""
    needs_candidates: bool = False
    """True when the loss reads the candidates that were recorded at sampling (``generation.record``)."""
    needs_values: bool = False
    """True for a critic: ``token_advantages`` is called instead of ``advantages``; costs a forward pass."""

    def check(self, config: TrainConfig) -> None:  # noqa: B027 - nothing to refuse is a fine default
        """Refuse a configuration that cannot work with this algorithm.

        Raises:
            ValueError: One sentence says why and what to change.
        """

    @abstractmethod
    def advantages(self, samples: Sequence[Sample]) -> NDArray[np.float64]:
        """Advantage of each sample, [B], before weights. Called once for each batch, so state may be updated here."""

    def token_advantages(self, samples: Sequence[Sample], values: Floats, mask: Bools) -> tuple[Floats, Floats]:
        """Advantages and the critic's targets of each token; called once for each batch.

        Args:
            samples: B samples.
            values: [B, T] the critic's, 0 on padding.
            mask: [B, T] True on response tokens.

        Returns:
            Both [B, T]; what they hold on padding does not matter, but must be finite.
        """
        raise NotImplementedError(
            f"{type(self).__name__} asks for a critic (needs_values) and has no token_advantages."
        )

    @abstractmethod
    def loss(self, batch: TokenBatch) -> Loss:
        """Loss of a micro-batch; the losses of a batch's micro-batches add up."""

    def state(self) -> dict[str, Any]:
        """JSON-able state, for checkpoints."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027 - nothing to restore is a fine default
        """Continue from ``state()``."""


def find_algorithm(name: str) -> type[Algorithm]:
    """Return the algorithm behind an entry-point name or an import path ``package.module:Class``.

    Raises:
        AlgorithmNotFound: There is none, or it is no subclass of :class:`Algorithm`.
    """
    points = {point.name: point.value for point in entry_points(group=GROUP)} | _BUILT_IN
    path = name if ":" in name else points.get(name)
    if path is None:
        known = ", ".join(sorted(points))
        raise AlgorithmNotFound(
            f"There is no algorithm {name!r}; known are: {known}, or an import path such as package.module:Class."
        )
    module, _, attribute = path.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise AlgorithmNotFound(f"The algorithm {name!r} cannot be imported: {error}.") from error
    if not (isinstance(found, type) and issubclass(found, Algorithm)):
        raise AlgorithmNotFound(f"{name!r} is not a subclass of trainers.common.algorithm.Algorithm.")
    return found
