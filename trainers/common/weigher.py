"""Sample weights as a run's configuration asks for them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trainers.common.config import WeightsConfig
from trainers.common.sample import Sample
from trainers.common.weights import SampleWeights, sample_weights

__all__ = ["Weigher"]

_WINDOW = 256
"""Durations remembered for each task."""


class Weigher:
    """Reads what the weights need off the samples, and remembers what they need of earlier batches.

    Args:
        config: Rule, measure, normalisation, floor and cap.
    """

    def __init__(self, config: WeightsConfig) -> None:
        self.config = config
        self._seconds: dict[str, deque[float]] = {}

    def weigh(self, samples: Sequence[Sample], inclusion: ArrayLike | None = None) -> SampleWeights:
        """Weigh a batch.

        With ``task_median`` durations are first divided by the median of their task over earlier batches (over this one
        in a task's first). Within one task that changes nothing; between tasks it keeps slow ones from getting most of
        the weight.

        Args:
            samples: The batch.
            inclusion: [B] probability not to be dropped, from :class:`trainers.common.inclusion.Inclusion`.

        Raises:
            ValueError: CPU time is asked for and an environment does not report it.
        """
        seconds = self._measure(samples)
        valid = [sample.reward_valid for sample in samples]
        return sample_weights(
            seconds,
            valid,
            rule=self.config.rule,
            min_duration=self.config.min_duration,
            cap=self.config.cap,
            scale=self._medians(samples, seconds) if self.config.normalise == "task_median" else None,
            inclusion=inclusion,
        )

    def state(self) -> dict[str, Any]:
        """JSON-able state."""
        return {"seconds": {task: list(values) for task, values in self._seconds.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``."""
        self._seconds = {task: deque(map(float, values), maxlen=_WINDOW) for task, values in state["seconds"].items()}

    def _measure(self, samples: Sequence[Sample]) -> NDArray[np.float64]:
        if self.config.measure == "wall" or self.config.rule != "duration":
            return np.array([sample.duration for sample in samples], dtype=np.float64)
        times = [sample.info.get("cpu_time") for sample in samples]
        for sample, value in zip(samples, times, strict=True):
            if sample.reward_valid and not (isinstance(value, int | float) and math.isfinite(value)):
                raise ValueError(
                    f"weights.measure = 'cpu' needs the cpu_time of every program, and {sample.task} gives {value!r}; "
                    "use 'wall'."
                )
        return np.array([value if isinstance(value, int | float) else 0.0 for value in times], dtype=np.float64)

    def _medians(self, samples: Sequence[Sample], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        floored = np.maximum(np.nan_to_num(seconds), self.config.min_duration)
        scale = np.ones(len(samples))
        for task in dict.fromkeys(sample.task for sample in samples):
            own = [at for at, sample in enumerate(samples) if sample.task == task and sample.reward_valid]
            past = self._seconds.setdefault(task, deque(maxlen=_WINDOW))
            known = list(past) or floored[own].tolist()
            past.extend(floored[own].tolist())
            for at, sample in enumerate(samples):
                if sample.task == task and known:
                    scale[at] = float(np.median(known))
        return scale
