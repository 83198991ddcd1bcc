"""What counts as a success, and how good it is, in the eyes of the run's owner."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.instrument.base import MILESTONES
from mle_gym.tasks import get_task
from mle_gym.tasks.task import TaskData

__all__ = ["Judge"]

_TRAINED = MILESTONES.index("trained_model")


class Judge:
    """Judges samples by task.

    *Valid* means: scored, an estimator was fitted, and the score beats the sample submission's on the reward split.
    A program that copies the sample submission is not valid. Only ``probe`` sees what was fitted; with another
    instrumenter that is not asked for. For an environment that is no task of this package,
    ``scored`` alone is valid and a higher score is better.

    Args:
        env_ids: Environment ids.
        kwargs: Arguments of gym.make, which choose the data.
    """

    def __init__(self, env_ids: Sequence[str], kwargs: Mapping[str, Any]) -> None:
        self._data: dict[str, TaskData] = {}
        self._split = str(kwargs.get("reward_split", "public"))
        self._baseline: dict[str, float] = {}
        chosen = {key: kwargs[key] for key in ("data", "size") if kwargs.get(key) is not None}
        if kwargs.get("data_dir") is not None:
            chosen["data_dir"] = Path(str(kwargs["data_dir"]))
        for env_id in dict.fromkeys(env_ids):
            name = gym.registry[env_id.rpartition(":")[2]].kwargs.get("task")
            if isinstance(name, str):
                self._data[env_id] = get_task(name).load(**chosen)

    def gain(self, task: str, score: object) -> float:
        """Score with its sign such that more is better; nan for no score."""
        if not isinstance(score, int | float):
            return math.nan
        data = self._data.get(task)
        return float(score) if data is None or data.task.higher_is_better else -float(score)

    def valid(self, task: str, info: Mapping[str, Any]) -> bool:
        """True when the sample is valid as defined above."""
        if info.get("outcome") != "scored":
            return False
        if task not in self._data:
            return True
        milestones = info.get("milestones")
        fitted = isinstance(milestones, Sequence) and len(milestones) > _TRAINED and bool(milestones[_TRAINED])
        seen = info.get("instrumenter", "probe") == "probe"
        return (fitted or not seen) and self.gain(task, info.get("score")) > self.gain(task, self._sample_score(task))

    def private_score(self, task: str, submission: Path) -> float:
        """Score on the report split; nan where there is none. For reports only, never for learning."""
        data = self._data.get(task)
        if data is None or "private" not in data.splits or not submission.is_file():
            return math.nan
        try:
            return data.grade(submission, "private").score
        except InvalidSubmission:
            return math.nan

    def _sample_score(self, task: str) -> float:
        if task not in self._baseline:
            self._baseline[task] = self._data[task].sample_score(self._split)  # type: ignore[arg-type]
        return self._baseline[task]
