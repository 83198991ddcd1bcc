"""Writes executions to the log the moment they end, and answers from it what has been executed already."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import gymnasium as gym

from mle_gym.execution_key import ExecutionKey
from trainers.common.action import Action
from trainers.common.execution_log import ExecutionLog, ExecutionRecord

__all__ = ["Recorder"]


class Recorder:
    """What the environments of a run share to record their steps.

    A step is recorded in the thread that took it, before anybody can receive it; so a kill loses none that has ended.
    ``info`` gains one key, ``execution``: its ``id`` in the log, ``cached`` (the same program had been executed for
    another ticket), ``attached`` (this ticket's own execution ended before a restart), and that execution's stamps.

    Args:
        log: Where to.
        submissions: Folder for the submissions of steps that were not received yet; made when missing.
        clock: Seconds since the run's start.
        cache: Whether a program that was executed already is answered from the log.
    """

    def __init__(
        self, log: ExecutionLog, submissions: Path, clock: Callable[[], float], *, cache: bool = False
    ) -> None:
        self.log = log
        self.submissions = submissions
        self.clock = clock
        self.cache = cache
        submissions.mkdir(exist_ok=True)

    def wrap(self, env: gym.Env[Any, Any], task: str, index: int) -> gym.Env[Any, Any]:
        """Return the environment with its steps recorded.

        Args:
            env: Directly above what ``gym.make`` returns: wrappers around it see recorded steps as they see others.
            task: Its id.
            index: Its number in the pool.
        """
        return _Recorded(env, self, task, index)

    def keep_submission(self, ticket: int, path: str) -> None:
        """Keep a submission until :meth:`received`; the environment's own copy ends with the process."""
        if ticket < 0 or not path:
            return
        kept = self.submissions / f"{ticket}.csv"
        kept.unlink(missing_ok=True)
        try:
            os.link(path, kept)
        except OSError:  # another file system, or one without links
            shutil.copyfile(path, kept)

    def submission(self, ticket: int) -> str:
        """Path of a kept submission, ``""`` where there is none."""
        path = self.submissions / f"{ticket}.csv"
        return str(path) if path.is_file() else ""

    def received(self, tickets: Iterable[int]) -> None:
        """These tickets are on record in ``samples.jsonl`` and their submissions were looked at."""
        for ticket in tickets:
            with contextlib.suppress(FileNotFoundError):
                (self.submissions / f"{ticket}.csv").unlink()

    def failed(self, action: Action, task: str, index: int, obs: str, info: dict[str, Any]) -> int:
        """Record a step that its environment could not take or finish; returns its number."""
        now = self.clock()
        return self.log.append(
            ExecutionRecord(
                ticket=action.ticket if action.ticket >= 0 else None,
                action=action.digest,
                key=_plain_key(task, action),
                env=index,
                attempt=action.attempt,
                obs=obs,
                reward=0.0,
                terminated=False,
                truncated=True,
                info=info,
                queued=action.queued,
                generated=action.generated,
                started=now,
                ended=now,
            )
        )


class _Recorded(gym.Wrapper[Any, Any, Any, Any]):
    """Records each step."""

    def __init__(self, env: gym.Env[Any, Any], recorder: Recorder, task: str, index: int) -> None:
        super().__init__(env)
        self._recorder = recorder
        self._task = task
        self._index = index

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take the step, or answer it from the log."""
        recorder = self._recorder
        given = action if isinstance(action, Action) else Action(action)
        text = str(given)
        key = self._key(text)
        # An evaluation measures anew, so only training is answered from the log.
        if given.ticket >= 0:
            if known := recorder.log.finished(given.ticket, given.digest):
                return self._recall(given, known, attached=True)
            if recorder.cache and key is not None and (known := recorder.log.cached(key)):
                return self._recall(given, known, attached=False)
        begun = recorder.clock()
        obs, reward, terminated, truncated, info = self.env.step(text)
        ended = recorder.clock()
        seconds = float(info.get("duration") or 0.0) + float(info.get("grade_time") or 0.0)
        recorder.keep_submission(given.ticket, str(info.get("submission_path") or ""))
        record = ExecutionRecord(
            ticket=given.ticket if given.ticket >= 0 else None,
            action=given.digest,
            key=key or _plain_key(self._task, text),
            env=self._index,
            attempt=given.attempt,
            obs=str(obs),
            reward=float(reward),
            terminated=bool(terminated),
            truncated=bool(truncated),
            info=dict(info),
            queued=given.queued,
            generated=given.generated,
            started=max(begun, ended - seconds),
            ended=ended,
        )
        number = recorder.log.append(record)
        return obs, reward, terminated, truncated, {**info, "execution": _origin(record, number)}

    def _key(self, action: str) -> ExecutionKey | None:
        ask = getattr(self.env.unwrapped, "execution_key", None)
        key: ExecutionKey | None = ask(action) if ask else None
        return key

    def _recall(
        self, action: Action, known: ExecutionRecord, *, attached: bool
    ) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        path = self._recorder.submission(action.ticket) if attached else str(known.info.get("submission_path") or "")
        info = {**known.info, "submission_path": path if Path(path).is_file() else ""}
        # An environment with steps to come must know that this one was taken.
        recall = getattr(self.env.unwrapped, "recall", None)
        if recall is None:
            obs, reward, terminated, truncated = known.obs, known.reward, known.terminated, known.truncated
        else:
            obs, reward, terminated, truncated, info = recall(str(action), known.reward, info)
        origin = _origin(known, known.id) | {"attached": attached, "cached": not attached}
        return obs, reward, terminated, truncated, {**info, "execution": origin}


def _origin(record: ExecutionRecord, number: int) -> dict[str, Any]:
    stamps = {name: getattr(record, name) for name in ("queued", "generated", "started", "ended")}
    return {"id": number, "cached": False, "attached": False, **stamps}


def _plain_key(task: str, action: str) -> ExecutionKey:
    """Key of an execution whose environment does not tell what it depends on."""
    program = hashlib.sha256(action.encode("utf-8", "surrogatepass")).hexdigest()
    return ExecutionKey(task=task, program=program, data="", limits="", seed=0, instrumenter="")
