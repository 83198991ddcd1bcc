"""What ``info`` has to look like, whatever happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

import numpy as np

from mle_gym.instrument import MILESTONES
from mle_gym.outcome import Outcome, StepInfo

TYPES = get_type_hints(StepInfo)


def check_info(info: Mapping[str, Any], *, reset: bool = False) -> None:
    assert list(info) == list(TYPES)
    for key, value in info.items():
        if key == "milestones":
            assert isinstance(value, np.ndarray)
            assert (value.dtype, value.shape) == (np.dtype(np.bool_), (len(MILESTONES),))
        else:
            assert type(value) is TYPES[key], f"{key} is {type(value)}"
        if isinstance(value, str):
            value.encode("utf-8")
        assert not key.startswith("_")
    assert info["outcome"] in {"", *Outcome} if reset else info["outcome"] in set(Outcome)
    assert info["reward_valid"] == (info["outcome"] not in ("infrastructure_error", "cancelled"))
    assert (info["outcome"] == "scored") == (not np.isnan(info["score"]))
    assert (info["outcome"] in ("scored", "")) == (info["message"] == "")
    assert info["partial_credit"] == round(0.1 * int(info["milestones"].sum()), 10)
