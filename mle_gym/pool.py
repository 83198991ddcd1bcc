"""``EnvPool``: many environments, and whichever finishes first is answered first.

Invariants (all of the pool's state is changed under one lock):

1. An environment is *free*, *queued*, *running* or *ready*: ``send`` takes it from free to queued, a worker from queued
   to running to ready, and ``recv`` from ready to free. So it never has two tickets that were not received.
2. Tickets count up and are never used again. A worker's result is accepted only while its job is the very one that its
   environment waits for; a worker that was given up finds another job there, closes the environment it holds, and ends.
3. Every ticket is answered exactly once: by its step, as ``cancelled``, or as ``infrastructure_error`` when the step
   raised or its worker died. After an error, and when a worker is given up, the environment is built anew.
4. Until ``close`` there are ``slots`` workers: one that dies or is given up is replaced at once.
5. ``close`` returns within about twice ``patience`` seconds, whatever the environments do.

Workers are threads: a program runs in a process of its own, so a thread only waits.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from mle_gym.info import empty_info
from mle_gym.outcome import Outcome
from mle_gym.sandbox.base import SandboxUnavailable
from mle_gym.spaces import Utf8
from mle_gym.step_result import StepResult
from mle_gym.tasks.task import TaskUnavailable

__all__ = ["EnvPool", "StepResult"]

_logger = logging.getLogger(__name__)

EnvFactory = str | EnvSpec | Callable[[], gym.Env[Any, Any]]
_FATAL = (SandboxUnavailable, TaskUnavailable)
"""Errors that every later step would meet again: they reach the caller."""


@dataclass(slots=True, eq=False)
class _Job:
    ticket: int
    env_index: int
    action: Any
    queued: float
    started: float = float("nan")
    worker: threading.Thread | None = None
    cancel: threading.Event = field(default_factory=threading.Event)
    """Given to the environment as its ``cancel_event``."""
    overdue: float = float("inf")
    """When a cancelled job's worker is given up."""
    failure: tuple[Outcome, str] | None = None
    """Set: do not step, but build the environment anew and answer with this."""


class EnvPool:
    """Steps many environments at once and answers in order of completion.

    Args:
        specs: One environment each: an id, an ``EnvSpec``, or a function without arguments.
        slots: How many step at once; all of them by default. More may be sent: the rest queue.
        wrappers: Applied to every environment, in order.
        autoreset: Whether an ended episode is followed by a reset at once (``next_obs``).
        patience: Seconds that a cancelled step and ``close`` wait before they give a worker up.

    Example:
        >>> import mle_gym
        >>> with mle_gym.EnvPool(["mle_gym/credit-default-v0"] * 2) as pool:
        ...     tickets = [pool.send(start.env_index, "No program.") for start in pool.reset(seed=0)]
        ...     sorted(result.info["outcome"] for result in pool.recv(min_ready=2))
        ['no_program', 'no_program']
    """

    def __init__(
        self,
        specs: Sequence[EnvFactory],
        slots: int | None = None,
        *,
        wrappers: Sequence[Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]]] = (),
        autoreset: bool = True,
        patience: float = 30.0,
    ) -> None:
        if isinstance(specs, str | EnvSpec) or callable(specs) or not specs:
            raise ValueError("EnvPool needs a list of at least one id, EnvSpec or function that makes an environment.")
        self._slots = len(specs) if slots is None else slots
        if self._slots < 1:
            raise ValueError(f"slots={slots} has to be at least 1.")
        self._specs = tuple(specs)
        self._wrappers = tuple(wrappers)
        self._autoreset = autoreset
        self._patience = patience
        self._changed = threading.Condition()
        self._queue: deque[_Job] = deque()
        self._jobs: list[_Job | None] = [None] * len(specs)
        self._ready: deque[StepResult] = deque()
        self._errors: deque[BaseException] = deque()
        self._busy = [False] * len(specs)
        self._last: list[tuple[Any, dict[str, Any]] | None] = [None] * len(specs)
        self._workers: set[threading.Thread] = set()
        self._tickets = 0
        self._closed = False
        # A thread inherits the cores of whoever starts it, and recv may be called by one that is pinned.
        self._cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
        self._envs: list[gym.Env[Any, Any] | None] = []
        try:
            self._envs.extend(self._build(index) for index in range(len(specs)))
        except BaseException:
            self.close()
            raise
        with self._changed:
            self._hire()

    @property
    def num_envs(self) -> int:
        """Number of environments."""
        return len(self._specs)

    @property
    def envs(self) -> tuple[gym.Env[Any, Any] | None, ...]:
        """The environments, None where one could not be built anew; leave those alone that are busy."""
        return tuple(self._envs)

    def reset(
        self,
        indices: Sequence[int] | None = None,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> list[StepResult]:
        """Reset free environments, all by default, one after another.

        Args:
            indices: Which ones.
            seed: Environment ``i`` gets ``seed + i``.
            options: Handed to each ``reset``.

        Returns:
            One result each, with ticket -1 and ``obs == next_obs``.

        Raises:
            RuntimeError: The pool is closed or an environment is busy.
        """
        chosen = range(self.num_envs) if indices is None else indices
        with self._changed:
            for index in chosen:
                self._check_free(index)
        results = []
        for index in chosen:
            env = self._envs[index] or self._build(index)
            self._envs[index] = env
            start = time.monotonic()
            obs, info = env.reset(seed=None if seed is None else seed + index, options=options)
            self._last[index] = (obs, info)
            results.append(
                StepResult(-1, index, obs, 0.0, False, False, info, obs, info, start, start, time.monotonic())
            )
        return results

    def send(self, env_index: int, action: Any) -> int:
        """Queue a step and return its ticket; never blocks.

        Raises:
            RuntimeError: The environment has a ticket not received yet, or was never reset; or the pool is closed.
            TypeError: The environment takes text and ``action`` is none.
        """
        with self._changed:
            self._check_free(env_index)
            if self._last[env_index] is None:
                raise RuntimeError(f"Environment {env_index} was never reset; call reset() before send().")
            env = self._envs[env_index]
            if env is not None and isinstance(space := env.action_space, Utf8) and not isinstance(action, str):
                raise TypeError(f"The action is {type(action).__name__}; the action space {space} takes str.")
            job = _Job(self._tickets, env_index, action, time.monotonic())
            self._tickets += 1
            self._busy[env_index] = True
            self._jobs[env_index] = job
            self._queue.append(job)
            self._changed.notify_all()
            return job.ticket

    def recv(self, min_ready: int = 1, timeout: float | None = None) -> list[StepResult]:
        """Wait until ``min_ready`` results are there and return all that are, in order of completion.

        Args:
            min_ready: 0 looks without waiting.
            timeout: Seconds; then whatever is there is returned, maybe nothing.

        Raises:
            ValueError: Fewer than ``min_ready`` tickets are open, so they would never come; or an argument is negative
                or no number.
            SandboxUnavailable | TaskUnavailable: A step met an error that every later one would meet. Its ticket is
                answered nonetheless, by the next ``recv``.
            RuntimeError: The pool is closed.
        """
        if not (isinstance(min_ready, int | np.integer) and min_ready >= 0):
            raise ValueError(f"min_ready={min_ready!r} has to be a whole number of at least 0.")
        if timeout is not None and not (isinstance(timeout, int | float | np.number) and timeout >= 0):
            raise ValueError(f"timeout={timeout!r} has to be a number of seconds of at least 0, or None.")
        deadline = float("inf") if timeout is None else time.monotonic() + float(timeout)
        with self._changed:
            if min_ready > sum(self._busy):
                raise ValueError(f"min_ready={min_ready}, but only {sum(self._busy)} tickets are open.")
            while True:
                self._check_open()
                self._give_up_overdue()
                now = time.monotonic()
                if self._errors:
                    raise self._errors.popleft()
                if len(self._ready) >= min_ready or now >= deadline:
                    break
                wake = min([deadline, *(job.overdue for job in self._jobs if job)])
                # Longer waits than the platform can count are made in pieces.
                self._changed.wait(None if wake == float("inf") else min(max(wake - now, 0.001), 1e6))
            results = list(self._ready)
            self._ready.clear()
            for result in results:
                self._busy[result.env_index] = False
            return results

    def cancel(self, ticket: int) -> bool:
        """End a step early; its result still comes, with outcome ``cancelled`` and ``reward_valid=False``.

        A queued step is answered at once, a running program is ended. An environment that knows nothing of
        cancellation (it has no ``cancel_event``) is given up and built anew.

        Returns:
            False when the ticket was answered already.
        """
        with self._changed:
            job = next((job for job in self._jobs if job is not None and job.ticket == ticket), None)
            if job is None:
                if not 0 <= ticket < self._tickets:
                    raise ValueError(f"There is no ticket {ticket}; send() returns them.")
                return False
            if job.failure is not None:
                return True
            if job.worker is None:
                self._queue.remove(job)
                self._deliver(job, self._failed(job, Outcome.CANCELLED, "Cancelled before it began.", over=False))
                return True
            job.cancel.set()
            env = self._envs[job.env_index]
            heeds = env is not None and hasattr(env.unwrapped, "cancel_event")
            job.overdue = min(job.overdue, time.monotonic() + (self._patience if heeds else 0.0))
            self._changed.notify_all()
            return True

    def close(self) -> None:
        """End running steps, workers and environments; idempotent. Open tickets are not answered."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._queue.clear()
            for job in self._jobs:
                if job is not None:
                    job.cancel.set()
            workers = tuple(self._workers)
            self._changed.notify_all()
        deadline = time.monotonic() + self._patience
        for worker in workers:
            worker.join(max(deadline - time.monotonic(), 0.0))
        if stuck := [worker.name for worker in workers if worker.is_alive()]:
            _logger.warning("Left behind at close, still busy after %g s: %s", self._patience, ", ".join(stuck))
        held = {job.env_index for job in self._jobs if job is not None and job.worker and job.worker.is_alive()}
        idle = [env for index, env in enumerate(self._envs) if index not in held]
        closer = threading.Thread(target=_close, args=idle, daemon=True)
        closer.start()
        closer.join(self._patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("The pool is closed; make a new one.")

    def _check_free(self, index: int) -> None:
        self._check_open()
        if not 0 <= index < self.num_envs:
            raise IndexError(f"There is no environment {index}; the pool has {self.num_envs}.")
        if self._busy[index]:
            raise RuntimeError(f"Environment {index} is busy; recv() its result first.")

    def _build(self, index: int) -> gym.Env[Any, Any]:
        spec = self._specs[index]
        env = gym.make(spec) if isinstance(spec, str | EnvSpec) else spec()
        for wrapper in self._wrappers:
            env = wrapper(env)
        return env

    def _hire(self) -> None:
        """Fill up the workers; called with the lock held."""
        while len(self._workers) < self._slots and not self._closed:
            worker = threading.Thread(target=self._work, name=f"EnvPool-worker-{len(self._workers)}", daemon=True)
            self._workers.add(worker)
            worker.start()

    def _work(self) -> None:
        me = threading.current_thread()
        try:
            self._unpin()
            while self._work_once(me):
                pass
        except BaseException:
            _logger.exception("%s died and is replaced", me.name)
        finally:
            orphans = []
            with self._changed:
                self._workers.discard(me)
                for job in self._jobs:
                    if job is not None and job.worker is me:
                        orphans.append(self._envs[job.env_index])
                        self._hand_over(job, Outcome.INFRASTRUCTURE_ERROR, "The worker of this step died.")
                self._hire()
            _close(*orphans)

    def _unpin(self) -> None:
        if self._cores is None:
            return
        try:
            os.sched_setaffinity(0, self._cores)
        except OSError as error:  # the machine has taken these cores away since
            _logger.warning("A worker stays on the cores %s (%s)", sorted(os.sched_getaffinity(0)), error)

    def _work_once(self, me: threading.Thread) -> bool:
        """Take one job and answer it; False when this worker is to end."""
        with self._changed:
            while not self._queue and not self._closed:
                self._changed.wait()
            if self._closed:
                return False
            job = self._queue.popleft()
            job.worker, job.started = me, time.monotonic()
            env = self._envs[job.env_index]
        result, env = self._restore(job, env) if job.failure else self._step(job, env)
        with self._changed:
            wanted = self._jobs[job.env_index] is job and not self._closed
            if wanted:
                self._envs[job.env_index] = env
                self._deliver(job, result)
            elif self._envs[job.env_index] is env:
                self._envs[job.env_index] = None
        if not wanted:
            _close(env)
        return wanted

    def _step(self, job: _Job, env: gym.Env[Any, Any] | None) -> tuple[StepResult, gym.Env[Any, Any] | None]:
        try:
            if env is None:
                env = self._build(job.env_index)
                env.reset()
            if hasattr(env.unwrapped, "cancel_event"):
                env.unwrapped.cancel_event = job.cancel
            obs, reward, terminated, truncated, info = env.step(job.action)
        except Exception as error:
            _logger.exception("The step of environment %d failed", job.env_index)
            if isinstance(error, _FATAL):
                with self._changed:
                    self._errors.append(error)
            job.failure = (Outcome.INFRASTRUCTURE_ERROR, f"The step failed: {type(error).__name__}: {error}")
            return self._restore(job, env)
        result = StepResult(job.ticket, job.env_index, obs, float(reward), bool(terminated), bool(truncated), info, obs)
        if not (self._autoreset and (terminated or truncated)):
            return result, env
        try:
            next_obs, next_info = env.reset()
        except Exception:
            _logger.exception("The reset of environment %d failed", job.env_index)
            _close(env)
            env, next_obs, next_info = self._renew(job)
        return replace(result, next_obs=next_obs, next_info=next_info), env

    def _restore(self, job: _Job, env: gym.Env[Any, Any] | None) -> tuple[StepResult, gym.Env[Any, Any] | None]:
        """Answer a failed job, and put a new environment in the place of the old one."""
        assert job.failure is not None
        _close(env)
        env, obs, info = self._renew(job)
        return replace(self._failed(job, *job.failure, over=True), next_obs=obs, next_info=info), env

    def _renew(self, job: _Job) -> tuple[gym.Env[Any, Any] | None, Any, dict[str, Any]]:
        """Build and reset an environment; what goes wrong here reaches the caller of ``recv``."""
        try:
            env = self._build(job.env_index)
            obs, info = env.reset()
        except Exception as error:
            with self._changed:
                self._errors.append(error)
            return None, self._last_of(job)[0], {}
        return env, obs, info

    def _last_of(self, job: _Job) -> tuple[Any, dict[str, Any]]:
        last = self._last[job.env_index]
        assert last is not None
        return last

    def _failed(self, job: _Job, outcome: Outcome, message: str, *, over: bool) -> StepResult:
        obs, known = self._last_of(job)
        kept = {key: known.get(key, "") for key in ("data", "reward_split", "instrumenter", "sandbox")}
        info = {**empty_info(**kept), "outcome": str(outcome), "reward_valid": False, "message": message}
        return StepResult(job.ticket, job.env_index, obs, 0.0, False, over, info, obs)

    def _deliver(self, job: _Job, result: StepResult) -> None:
        """Answer a job; called with the lock held."""
        self._jobs[job.env_index] = None
        self._last[job.env_index] = (result.next_obs, result.next_info or result.info)
        self._ready.append(replace(result, queued=job.queued, started=job.started, ended=time.monotonic()))
        self._changed.notify_all()

    def _hand_over(self, job: _Job, outcome: Outcome, message: str) -> None:
        """Take a job from its worker for good; called with the lock held."""
        successor = _Job(job.ticket, job.env_index, None, job.queued, job.started, failure=(outcome, message))
        self._jobs[job.env_index] = successor
        self._envs[job.env_index] = None
        self._queue.appendleft(successor)
        self._changed.notify_all()

    def _give_up_overdue(self) -> None:
        """Replace workers that a cancelled step still holds; called with the lock held."""
        now = time.monotonic()
        for job in self._jobs:
            if job is not None and job.overdue <= now and job.worker is not None:
                _logger.warning("%s is given up: its step went on after it was cancelled", job.worker.name)
                self._workers.discard(job.worker)
                self._hand_over(job, Outcome.CANCELLED, "Cancelled while it ran.")
        self._hire()


def _close(*envs: gym.Env[Any, Any] | None) -> None:
    for env in envs:
        try:
            if env is not None:
                env.close()
        except Exception:
            _logger.exception("Closing %s failed", env)
