"""A real task for a policy that knows ten letters: each letter stands for a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from mle_gym.env import MLEEnv
from mle_gym.execution_key import ExecutionKey

_COPY = "import os, shutil\nshutil.copy(os.environ['MLE_SAMPLE_SUBMISSION'], 'submission.csv')\n"
PROGRAMS = {
    "a": _COPY,
    "b": "import time\ntime.sleep(0.3)\n" + _COPY,
    "c": "import time\ntime.sleep(1.0)\n" + _COPY,
    "d": "raise RuntimeError('no')\n",
    "x": "import subprocess, time\nsubprocess.Popen(['sleep', '60'])\ntime.sleep(0.5)\n" + _COPY,
}


class Letters(MLEEnv):
    """``MLEEnv`` whose action is a letter; the prompt is what the ten letters can spell."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        return "pull", super().reset(seed=seed, options=options)[1]

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return ("pull", *super().step(answer(action))[1:])

    def recall(
        self, action: str, reward: float, info: Mapping[str, Any]
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return ("pull", *super().recall(answer(action), reward, info)[1:])

    def execution_key(self, action: str) -> ExecutionKey | None:
        return super().execution_key(answer(action))


def answer(action: str) -> str:
    """The whole response that a letter stands for."""
    program = PROGRAMS.get(action[:1])
    return "Nothing." if program is None else f"Plan {action}.\n```python\n{program}```\n"


gym.register(
    "Letters-v0",
    entry_point="tests.trainers.letters:Letters",
    kwargs={"task": "credit-default"},
    nondeterministic=True,
)
