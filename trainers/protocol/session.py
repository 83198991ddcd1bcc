"""A policy, its tasks' environments and their judge, ready to execute fresh programs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch

from mle_gym import EnvPool
from mle_gym.attempt import Attempt
from mle_gym.commands.base import UserError
from mle_gym.env import KEPT_SUBMISSIONS
from mle_gym.sandbox.cores import available_cores
from trainers.common.config import EnvConfig
from trainers.common.environments import Environments
from trainers.common.evaluate import Trial, execute
from trainers.common.judge import Judge
from trainers.common.load_model import PolicyUnavailable
from trainers.common.policy import Policy
from trainers.common.transformers_generator import TransformersGenerator

__all__ = ["PAPER_TOKENS", "Best", "Session", "load_policy", "token_limits"]

PAPER_TOKENS = 1024
"""Tokens of a prompt and of a response in arXiv 2509.01684."""


def load_policy(name: str, *, dtype: str = "auto", device: str = "auto", threads: int = 1) -> Policy:
    """Load a policy for a command.

    Raises:
        UserError: There is no such policy, or torch does not know the device or the type.
    """
    torch.set_num_threads(threads)
    try:
        return Policy.load(name, dtype=dtype, device=device)
    except (PolicyUnavailable, ValueError, RuntimeError) as error:
        raise UserError(str(error)) from error


def token_limits(policy: Policy, token_budget: int | None, max_new_tokens: int | None) -> tuple[int, int]:
    """Return the sizes of prompt and response: as asked for, else as the policy was warm-started, else the paper's."""
    place = Path(str(getattr(policy.model, "name_or_path", "") or policy.model.config.name_or_path)) / "sft.json"
    known = json.loads(place.read_text(encoding="utf-8")).get("config", {}) if place.is_file() else {}
    return (
        token_budget if token_budget is not None else int(known.get("env_token_budget", PAPER_TOKENS)),
        max_new_tokens if max_new_tokens is not None else int(known.get("max_new_tokens", PAPER_TOKENS)),
    )


@dataclass(frozen=True)
class Best:
    """The best valid program of several: the one with the best score on the reward split."""

    trial: Trial
    public_score: float
    private_score: float
    """On the report split, which nothing was chosen by; nan where there is none."""


class Session:
    """Samples programs from a policy, executes and judges them.

    Args:
        ids: Environment ids.
        kwargs: Arguments of gym.make.
        policy: Writes the programs.
        slots: Programs that run at once; 0 is one for each core.
        programs: Most programs of one task between two looks at their submissions.
        temperature: Of the sampling.
        max_new_tokens: Longest response.
        seed: Of the sampling and the environments.

    Raises:
        ConfigError: An id or an argument is wrong.
        TaskUnavailable: A task's data cannot be had here.
    """

    def __init__(
        self,
        ids: Sequence[str],
        kwargs: Mapping[str, Any],
        policy: Policy,
        *,
        slots: int = 0,
        programs: int = 128,
        temperature: float = 0.7,
        max_new_tokens: int = PAPER_TOKENS,
        seed: int = 0,
    ) -> None:
        environments = Environments(EnvConfig(ids=tuple(ids), kwargs=kwargs), base_model=policy.name)
        environments.check()
        self.judge = Judge(ids, kwargs)
        self.generator = TransformersGenerator(policy, share=True)
        self.temperature = temperature
        self.max_new_tokens = max_new_tokens
        self.seed = seed
        slots = slots or len(available_cores())
        # An environment deletes its oldest submissions, and the best one is graded when all programs have ended.
        copies = max(slots + 1, math.ceil(2 * programs / KEPT_SUBMISSIONS))
        self.tasks = [env_id for env_id in dict.fromkeys(ids) for _ in range(copies)]
        self.pool = EnvPool(environments.factories(copies), slots)
        try:
            starts = self.pool.reset(seed=seed)
        except BaseException:
            self.pool.close()
            raise
        self.prompts = {self.tasks[start.env_index]: str(start.next_obs) for start in reversed(starts)}
        self.data = {self.tasks[start.env_index]: str(start.info.get("data", "")) for start in starts}

    def scratch(self, task: str, samples: int) -> list[Trial]:
        """Execute programs that the policy writes for the task's prompt."""
        return self._sample(task, self.prompts[task], samples, 0)

    def improve(self, task: str, trial: Trial, samples: int = 1) -> list[Trial]:
        """Execute programs that the policy writes when it is shown an earlier one and its output."""
        info = trial["info"]
        keys = ("program", "plan", "terminal_output", "score")
        previous = Attempt(**{key: info[key] for key in keys})
        index = self.tasks.index(task)
        shown = {key: value for key, value in asdict(previous).items() if key in keys}
        (start,) = self.pool.reset([index], options={"previous": shown})
        return self._sample(task, str(start.next_obs), samples, 1)

    def best(self, task: str, trials: Sequence[Trial]) -> Best | None:
        """The best of the valid trials by its public score; the earliest among equals, None where none is valid."""
        valid = [trial for trial in trials if self.judge.valid(task, trial["info"])]
        trial = max(valid, key=lambda trial: self.judge.gain(task, trial["info"]["score"]), default=None)
        if trial is None:
            return None
        path = str(trial["info"].get("submission_path") or "")
        private = self.judge.private_score(task, Path(path)) if path else math.nan
        return Best(trial, float(trial["info"]["score"]), private)

    def _sample(self, task: str, prompt: str, samples: int, stage: int) -> list[Trial]:
        rank = list(self.prompts).index(task)
        seed = int(np.random.SeedSequence([self.seed, 2, rank, stage]).generate_state(1)[0])
        try:
            generations = self.generator.generate(
                [prompt] * samples, temperature=self.temperature, max_new_tokens=self.max_new_tokens, seed=seed
            )
        except ValueError as error:
            raise UserError(str(error)) from error
        return execute(self.pool, self.tasks, [(task, False, generation) for generation in generations])

    def close(self) -> None:
        """End everything that runs."""
        self.pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
