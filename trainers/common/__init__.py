"""What every trainer shares: policies, generators, rollouts, admission, weights, losses, records.

The names below are imported when they are first used, so that importing the package needs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainers.common.algorithm import Algorithm, TokenBatch
    from trainers.common.losses import Loss
    from trainers.common.policy import Policy
    from trainers.common.sample import Generation, Sample

__all__ = ["Algorithm", "Generation", "Loss", "Policy", "Sample", "TokenBatch"]

_HOMES = {
    "Algorithm": "algorithm",
    "Generation": "sample",
    "Loss": "losses",
    "Policy": "policy",
    "Sample": "sample",
    "TokenBatch": "algorithm",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'trainers.common' has no attribute {name!r}")
    return getattr(importlib.import_module(f"trainers.common.{_HOMES[name]}"), name)
