"""``MLEEnv``: one machine-learning task as a Gymnasium environment."""

from __future__ import annotations

import shutil
import threading
import weakref
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import gymnasium as gym

from mle_gym.attempt import Attempt
from mle_gym.config import EnvConfig
from mle_gym.execution_key import ExecutionKey
from mle_gym.info import attempt_of, empty_info, step_info
from mle_gym.instrument import Instrumenter, InstrumenterFailed, credit
from mle_gym.interpreter import Interpreter
from mle_gym.outcome import Outcome, StepInfo
from mle_gym.prompts import render_improve, render_solve
from mle_gym.rendering import as_text, show
from mle_gym.response import Response
from mle_gym.rewards import get_reward
from mle_gym.sandbox.base import Execution, Status
from mle_gym.sandbox.cores import available_cores
from mle_gym.scratch import scratch_folder
from mle_gym.shared import shared_data, shared_instrumenter, shared_sandbox
from mle_gym.spaces import MAX_LENGTH, Utf8
from mle_gym.suggest import choose, unknown_argument
from mle_gym.tasks import get_task
from mle_gym.tasks.task import TaskData
from mle_gym.verdict import SUBMISSION, Verdict

__all__ = ["MLEEnv"]

KEPT_SUBMISSIONS = 256
"""Submissions that an environment keeps on disk; older ones are deleted."""


class MLEEnv(gym.Env[str, str]):
    r"""One machine-learning task: the action is a plan and a program, the reward is what its submission earns.

    ## Description
    A program is run in a sandbox, in a folder of its own with the task's public data in ``input/`` (read-only). What
    it writes to ``submission.csv`` is graded with the task's metric. ``$MLE_SAMPLE_SUBMISSION`` is the path of a sample
    submission, ``$MLE_SEED`` the seed. There is one id for each task, ``mle_gym/<task>-v0``.

    ## Action Space
    :class:`~mle_gym.spaces.Utf8`: a plan of 3 to 5 sentences, then exactly one fenced ``python`` block with the whole
    program (see :class:`~mle_gym.response.Response`). ``action_space.sample()`` draws short valid answers that hand in
    the sample submission.

    ## Observation Space
    :class:`~mle_gym.spaces.Utf8`: the prompt. It describes the task, its files, the metric, the limits and the
    packages in at most ``token_budget`` approximate tokens. After a step it shows that attempt, its output and how it
    ended. Both spaces are the same for every task.

    ## Starting State
    The task's prompt, always the same; ``reset(options={"previous": {...}})`` begins with an attempt to improve.
    ``reset(seed=s)`` makes ``s`` the programs' ``$MLE_SEED``; that does not make training on a GPU deterministic.

    ## Rewards
    By name (:mod:`mle_gym.rewards`). ``paper``: the score, its sign turned where lower is better, clipped to
    [-9, 10]; without a valid submission -10 + 0.1 for each milestone reached (:data:`mle_gym.MILESTONES`). It is
    computed on ``reward_split`` of the hidden answers; what leaderboards report lies on another split, and nothing of
    that reaches the observation, the reward or ``info``. Where ``info["reward_valid"]`` is False the infrastructure
    failed or the run was cancelled: the reward is 0.0 and must be masked.

    ## Episode End
    ``terminated`` after ``max_steps`` programs; ``truncated`` instead if the last of them was not judged.

    ## Information
    The keys and types of :class:`~mle_gym.outcome.StepInfo`, the same at every reset and step; ``nan``, ``""`` and
    False where there is nothing.

    ## Arguments
    All are JSON-able.

    Args:
        task: Name of the task; an id has it already.
        data: ``auto`` or ``offline``, or what else the task has.
        data_dir: Folder of prepared data; by default ``$MLE_GYM_DATA``, else ``~/.cache/mle_gym``.
        size: Size of stand-in data, for tasks that offer several.
        sandbox: Backend that runs programs: ``local``, or the name of an installed plug-in.
        python: Interpreter that runs programs; by default this one.
        cores: Exclusive cores of a program; by default the task's suggestion, else 1. 0 shares all cores and spoils
            durations.
        gpus: GPUs of a program; by default the task's suggestion, else 0.
        memory_mb: MiB of a program; by default the task's suggestion, else 2048.
        time_limit: Seconds of a program; by default the task's suggestion, else 60.
        allow_unsafe: Run programs even where this machine cannot confine them.
        require: Properties that must be enforced, for example ``["network"]``.
        instrumenter: ``probe``, ``llm`` or ``none``.
        instrumenter_options: What the instrumenter takes; ``llm`` needs ``{"model": NAME}``, a model of transformers,
            or ``{"base_url": URL, "model": NAME}``, one behind an OpenAI-compatible server.
        reward: ``paper``, ``medal``, ``percentile``, ``normalized``, a registered name, or ``package.module:function``.
        reward_split: ``public``, ``private`` or ``all`` of the hidden answers.
        max_steps: Programs in an episode.
        program_seed: ``$MLE_SEED`` of every program; by default each episode has its own.
        token_budget: Size of the prompt in approximate tokens of three characters.
        render_mode: ``human`` prints every step, ``ansi`` makes ``render()`` return it as text.

    Raises:
        KeyError: There is no such task.
        ValueError: An argument is not one of its choices or is out of range.
        TypeError: An argument has the wrong type.

    ## References
    Yang, He-Yueya, Liang: Reinforcement Learning for Machine Learning Engineering Agents, arXiv 2509.01684.

    ## Version History
    - v0: first version.

    Example:
        >>> import gymnasium as gym
        >>> import mle_gym
        >>> env = gym.make("mle_gym/credit-default-v0")
        >>> prompt, info = env.reset(seed=0)
        >>> "metric: roc_auc, higher is better" in prompt
        True
        >>> action = "Hand in the sample.\n```python\nimport os, shutil\n"
        >>> action += "shutil.copy(os.environ['MLE_SAMPLE_SUBMISSION'], 'submission.csv')\n```"
        >>> prompt, reward, terminated, truncated, info = env.step(action)
        >>> reward, terminated, info["outcome"], info["score"]
        (0.5, True, 'scored', 0.5)
        >>> env.close()
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["human", "ansi"], "render_fps": 1}  # type: ignore[misc]

    def __init__(
        self,
        task: str,
        *,
        data: str = "auto",
        data_dir: str | None = None,
        size: str | None = None,
        sandbox: str = "local",
        python: str | None = None,
        cores: int | None = None,
        gpus: int | None = None,
        memory_mb: int | None = None,
        time_limit: float | None = None,
        allow_unsafe: bool = False,
        require: tuple[str, ...] | list[str] = (),
        instrumenter: str = "probe",
        instrumenter_options: Mapping[str, object] | None = None,
        reward: str = "paper",
        reward_split: str = "public",
        max_steps: int = 1,
        program_seed: int | None = None,
        token_budget: int = 1024,
        render_mode: str | None = None,
        **unknown: Any,
    ) -> None:
        for name in unknown:
            raise TypeError(unknown_argument(name, [field.name for field in fields(EnvConfig)]))
        self.task = get_task(task)
        self.config = EnvConfig(
            data=data,
            data_dir=data_dir,
            size=size,
            sandbox=sandbox,
            python=python,
            cores=cores,
            gpus=gpus,
            memory_mb=memory_mb,
            time_limit=time_limit,
            allow_unsafe=allow_unsafe,
            require=tuple(require),
            instrumenter=instrumenter,
            instrumenter_options=dict(instrumenter_options or {}),
            reward=reward,
            reward_split=reward_split,
            max_steps=max_steps,
            program_seed=program_seed,
            token_budget=token_budget,
            render_mode=render_mode,
        )
        self.render_mode = render_mode
        self.action_space = Utf8(MAX_LENGTH, sampler="program")
        self.observation_space = Utf8(MAX_LENGTH)
        self.limits = self.config.limits(self.task)
        self.cancel_event: threading.Event | None = None
        """Set from another thread, it cancels the running program; whoever steps the environment may put one here."""
        self.instrumenter: Instrumenter | None = None
        """None until the first reset; one that is put here before that is used instead of the one named."""
        self._reward = get_reward(reward)
        self._data: TaskData | None = None
        self._prompt = ""
        self._folder: Path | None = None
        self._runs = 0
        self._steps = max_steps  # No step before the first reset.
        self._seed = 0
        self._observation = ""
        self._tier = sandbox
        self._label = instrumenter
        self._last: tuple[StepInfo, float] | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode and return the prompt.

        Args:
            seed: Seeds the environment; it is the programs' ``$MLE_SEED`` too. None draws one from ``np_random``.
            options: ``{"previous": {"program": ..., "plan": ..., "terminal_output": ..., "score": ...}}`` asks for an
                improvement of that attempt; all but ``program`` may be left out.

        Raises:
            TaskUnavailable: The task's data cannot be had here.
            ValueError: The task has no such reward split, or lacks what the reward needs; the instrumenter needs a
                model; there is no such sandbox; this machine has fewer cores than a program is to have.
            SandboxUnavailable: A backend other than ``local`` cannot be had here.
        """
        super().reset(seed=seed)
        self._seed = int(self.np_random.integers(2**31)) if seed is None else seed % 2**32
        for key in options or {}:
            choose("options key", key, ["previous"])
        if self.instrumenter is None:
            self.instrumenter = shared_instrumenter(self.config.instrumenter, self.config.instrumenter_options)
        self._label = self.instrumenter.label()
        if self.config.sandbox == "local" and self.limits.cores > (total := len(available_cores())):
            raise ValueError(
                f"cores={self.limits.cores} for each program of {self.task.name}, but this process may run on {total}; "
                f"pass cores={total} or fewer."
            )
        if self.config.sandbox != "local":
            shared_sandbox(self.config)  # A backend elsewhere may be missing or out of reach: say so before any step.
        if self._data is None:
            self._data = self._load()
            self._prompt = render_solve(
                self.task, self._data, self.limits, self.config.token_budget, packages=self._packages()
            )
        previous = (options or {}).get("previous")
        self._steps = 0
        self._observation = self._prompt
        if previous is not None:
            self.improve_from(Attempt.from_mapping(previous))
        return self._observation, self._finish(self._blank(), 0.0)

    def improve_from(self, previous: Attempt) -> str:
        """Make the improve prompt for ``previous`` the observation in force, and return it; for wrappers."""
        if self._data is None:
            raise gym.error.ResetNeeded("There is no episode yet; call reset() before improve_from().")
        self._observation = render_improve(
            self.task, self._data, self.limits, self.config.token_budget, previous, packages=self._packages()
        )
        return self._observation

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Run the program in ``action`` and judge what it hands in.

        Raises:
            TypeError: ``action`` is not a ``str``.
            gymnasium.error.ResetNeeded: The episode is over, or never began.
            SandboxUnavailable: The machine cannot run programs as asked.
        """
        data = self._ready(action)
        assert self.instrumenter is not None
        self._label = self.instrumenter.label()
        response, problem = self._read(action)
        execution = Execution(Status.OK) if problem else self._run(response.program)
        verdict = problem or Verdict.of(execution, data, self.config.reward_split)
        earned = credit(execution.milestones)
        reward = 0.0
        if verdict.reward_valid:
            reward = self._reward.judge(verdict.grade, earned, data, self.config.reward_split)
        return self._advance(step_info(self._blank(), response, execution, verdict, earned), reward)

    def recall(
        self, action: str, reward: float, info: Mapping[str, Any]
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take the step ``action`` with a result that is known already: the episode moves on, but nothing runs.

        Args:
            action: Its program has the key of the execution that the result is from (:meth:`execution_key`).
            reward: What that step returned.
            info: What that step returned, duration and all; the plan becomes this action's.

        Raises:
            TypeError: ``action`` is not a ``str``.
            gymnasium.error.ResetNeeded: The episode is over, or never began.
        """
        self._ready(action)
        known = {**self._blank(), **info, "plan": Response.parse(action).plan}
        return self._advance(cast(StepInfo, {name: known[name] for name in self._blank()}), reward)

    def execution_key(self, action: str) -> ExecutionKey | None:
        """What the result of this action's program would depend on; None where it has no program or before a reset."""
        program = Response.parse(action).program if action in self.action_space else ""
        if not program or self._data is None or self.instrumenter is None:
            return None
        return ExecutionKey.of(
            program, self._data, self.limits, self.config, self._program_seed, self.instrumenter.label()
        )

    def render(self) -> str | None:  # type: ignore[override]
        """Show the last step: as text (``ansi``) or on the terminal (``human``)."""
        if self.render_mode is None or self._last is None:
            return None
        info, reward = self._last
        if self.render_mode == "ansi":
            return as_text(self.task, self._steps, info, reward)
        show(self.task, self._steps, info, reward)
        return None

    def close(self) -> None:
        """Delete the submissions that were kept; the shared sandbox lives on until the process ends."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    @property
    def _program_seed(self) -> int:
        return self._seed if self.config.program_seed is None else self.config.program_seed % 2**32

    def _ready(self, action: str) -> TaskData:
        """Check that a step with this action can be taken."""
        if not isinstance(action, str):
            raise TypeError(f"The action is {type(action).__name__}; the action space {self.action_space} takes str.")
        if self._data is None or self._steps >= self.config.max_steps:
            raise gym.error.ResetNeeded("The episode is over or never began; call reset() before step().")
        return self._data

    def _advance(self, info: StepInfo, reward: float) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        over, valid = self._steps >= self.config.max_steps, info["reward_valid"]
        if valid:
            self.improve_from(attempt_of(info))
        return self._observation, reward, over and valid, over and not valid, self._finish(info, reward)

    def _finish(self, info: StepInfo, reward: float) -> dict[str, Any]:
        self._last = (info, reward)
        if self.render_mode == "human":
            self.render()
        return dict(info)

    def _blank(self) -> StepInfo:
        assert self._data is not None
        config = self.config
        return empty_info(
            data=self._data.kind,
            reward_split=config.reward_split,
            instrumenter=self._label,
            sandbox=self._tier,
        )

    def _interpreter(self) -> Interpreter:
        """The programs' interpreter; this one stands in for its grammar where the programs run elsewhere."""
        return Interpreter.find(self.config.python if self.config.sandbox == "local" else None)

    def _packages(self) -> tuple[str, ...] | None:
        return self._interpreter().packages if self.config.sandbox == "local" else None

    def __getstate__(self) -> dict[str, Any]:
        # Folder and event belong to this very object: a copy makes its own.
        return {**self.__dict__, "_folder": None, "cancel_event": None}

    def _load(self) -> TaskData:
        data, split = shared_data(self.task, self.config), self.config.reward_split
        if split not in data.splits:
            offered = ", ".join(map(repr, data.splits))
            raise ValueError(f"{self.task.name} has no reward_split={split!r}; choose one of {offered}.")
        self._reward.check(data, split)
        return data

    def _read(self, action: str) -> tuple[Response, Verdict | None]:
        """Take the action apart; a verdict at once where there is nothing to run."""
        if action not in self.action_space:
            message = f"The action is not in {self.action_space}: it is too long or not valid Unicode."
            return Response("", ""), Verdict(Outcome.NO_PROGRAM, message)
        response = Response.parse(action)
        if not response.program:
            return response, Verdict(Outcome.NO_PROGRAM, "The answer has no ```python code block.")
        if error := self._interpreter().syntax_error(response.program):
            return response, Verdict(Outcome.SYNTAX_ERROR, error)
        return response, None

    def _run(self, source: str) -> Execution:
        assert self._data is not None
        assert self.instrumenter is not None
        if self._folder is None:
            self._folder = scratch_folder("submissions")
            # For environments that nobody closes.
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        while (artifacts := self._folder / f"{self._runs:06d}").exists():
            self._runs += 1  # a forked copy of this environment has the same folder
        artifacts.mkdir()
        shutil.rmtree(self._folder / f"{self._runs - KEPT_SUBMISSIONS:06d}", ignore_errors=True)
        self._runs += 1
        try:
            program = self.instrumenter.instrument(source, self._data)
        except InstrumenterFailed as error:
            return Execution(Status.INFRASTRUCTURE_ERROR, message=str(error))
        self._label = self.instrumenter.label(program)
        sample = f"./{self._data.sample_shown}"  # The sandbox makes it absolute.
        beside = {self._data.sample_shown: self._data.sample_copy} if self._data.sample_copy else {}
        sandbox = shared_sandbox(self.config)
        self._tier = f"{sandbox.name}:{sandbox.tier}"
        return sandbox.run(
            replace(program, seed=self._program_seed, env={**program.env, "MLE_SAMPLE_SUBMISSION": sample}),
            files={"input": self._data.public_dir, **beside},
            limits=self.limits,
            artifacts_dir=artifacts,
            collect=(SUBMISSION,),
            hidden=self._data.source_paths,
            cancel=self.cancel_event,
        )
