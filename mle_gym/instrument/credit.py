"""From what the sandbox reports to credit, flags and model families."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mle_gym.instrument.base import CREDIT_PER_MILESTONE, MILESTONES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mle_gym.sandbox.base import Reached

__all__ = ["credit", "fitted_estimators", "milestone_flags"]

ESTIMATOR = "estimator:"
MOST_ESTIMATORS = 8


def credit(reached: Iterable[Reached]) -> float:
    """Return the partial credit: 0.1 for each different milestone, in [0, 0.7].

    Names that are no milestone (estimator families, hook errors) earn nothing.

    Example:
        >>> from mle_gym.sandbox.base import Reached
        >>> credit([Reached("loaded_data", 0.1, "interpreter"), Reached("loaded_data", 0.2, "interpreter")])
        0.1
    """
    names = {item.name for item in reached}
    # Rounded: seven times 0.1 must be 0.7, whatever the order.
    return round(CREDIT_PER_MILESTONE * len(names.intersection(MILESTONES)), 10)


def milestone_flags(reached: Iterable[Reached]) -> NDArray[np.bool_]:
    """Return one flag for each name in ``MILESTONES``, shape ``(7,)``."""
    import numpy as np

    names = {item.name for item in reached}
    return np.array([name in names for name in MILESTONES], dtype=np.bool_)


def fitted_estimators(reached: Iterable[Reached]) -> tuple[str, ...]:
    """Return the classes of the models that the program fitted itself, in order of their first fit.

    A pipeline is named by its last step, a meta-estimator (``GridSearchCV``) by itself, a PyTorch model
    ``torch.nn.Module``, a native booster ``lightgbm.train``. Empty when the program fitted no model that the hooks
    see. Names come from the program's interpreter: use them for tables, never for credit.
    """
    names: dict[str, None] = {}
    for item in reached:
        name = item.name.removeprefix(ESTIMATOR)
        if name != item.name and name.isprintable() and all(part.isidentifier() for part in name.split(".")):
            names[name] = None
    return tuple(names)[:MOST_ESTIMATORS]
