"""An executor whose finished work survives a kill, and that tries again where the machine failed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mle_gym.outcome import Outcome
from mle_gym.pool import StepResult
from trainers.common.action import Action
from trainers.common.executor import Executor
from trainers.common.recorder import Recorder

__all__ = ["Durable"]


@dataclass(slots=True)
class _Sent:
    """A step on its way."""

    env_index: int
    action: Action
    theirs: int | None = None
    """Ticket of the live executor; None while the step is held back or pauses before another attempt."""
    due: float = 0.0
    failure: StepResult | None = None
    """What the last attempt came to."""
    cancelled: bool = False


class Durable:
    """Stands between a rollout and its environments, whose steps a :class:`Recorder` writes down.

    After a restart, what was in flight is sent again, and what had ended by then is answered by the recorder, first of
    all and in the order in which it ended. A step that ends as ``infrastructure_error`` is sent again, after a pause
    that doubles each time; the last failure is delivered as it is, to be masked.

    Args:
        live: Takes the steps.
        recorder: Has wrapped its environments.
        tasks: Environment id of each environment.
        retries: Further attempts after an infrastructure failure.
        pause: Seconds before the first of them.
        restarted: Whether this process continues a run.
        known: Tickets of the run that are on record already.
    """

    def __init__(
        self,
        live: Executor,
        recorder: Recorder,
        tasks: Sequence[str],
        *,
        retries: int = 0,
        pause: float = 1.0,
        restarted: bool = False,
        known: Iterable[int] = (),
    ) -> None:
        self._live = live
        self._recorder = recorder
        self._tasks = tuple(tasks)
        self._retries = retries
        self._pause = pause
        self._holding = restarted
        self._sent: dict[int, _Sent] = {}
        self._mine: dict[int, int] = {}
        self._next = 0
        self._delivered = list(known)
        """Tickets whose submissions may go at the next ``recv``, by when the trainer has looked at them."""
        self.attempts_repeated = 0
        """Attempts that were made because an earlier one failed."""

    def reset(self, *, seed: int | None = None) -> Sequence[StepResult]:
        """Reset the live executor."""
        return self._live.reset(seed=seed)

    def send(self, env_index: int, action: str) -> int:
        """Send a step on; right after a restart it is held until the first ``recv``, when all of them are known."""
        if any(sent.env_index == env_index for sent in self._sent.values()):
            raise RuntimeError(f"Environment {env_index} is busy; recv() its result first.")
        ticket = self._next
        self._next += 1
        self._sent[ticket] = _Sent(env_index, action if isinstance(action, Action) else Action(action))
        if not self._holding:
            self._pass_on(ticket)
        return ticket

    def recv(self, min_ready: int = 1, timeout: float | None = None) -> Sequence[StepResult]:
        """At least ``min_ready`` finished steps in order of completion, or fewer after ``timeout`` seconds.

        Raises:
            ValueError: Fewer than ``min_ready`` steps are open.
        """
        if min_ready > len(self._sent):
            raise ValueError(f"min_ready={min_ready}, but only {len(self._sent)} tickets are open.")
        self._recorder.received(self._delivered)
        self._delivered.clear()
        self._release()
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        results: list[StepResult] = []
        while True:
            now = time.monotonic()
            for ticket, sent in list(self._sent.items()):
                if sent.theirs is not None:
                    continue
                if sent.cancelled and sent.failure is not None:
                    info = {**sent.failure.info, "outcome": str(Outcome.CANCELLED), "reward_valid": False}
                    results.append(self._deliver(ticket, replace(sent.failure, info=info)))
                elif sent.due <= now:
                    self._pass_on(ticket)
            missing = max(0, min_ready - len(results))
            due = [sent.due for sent in self._sent.values() if sent.theirs is None]
            wait = max(0.0, min([deadline, *due]) - now) if missing else 0.0
            if self._mine:
                arrived = self._live.recv(min(1, missing), None if wait == float("inf") else wait)
                results += [answer for result in arrived if (answer := self._arrive(result)) is not None]
            elif missing:
                time.sleep(wait)
            if len(results) >= min_ready or time.monotonic() >= deadline:
                return results

    def cancel(self, ticket: int) -> None:
        """End a step early, where the live executor can; its result still comes."""
        sent = self._sent.get(ticket)
        if sent is None:
            return
        sent.cancelled = True
        if sent.theirs is not None and hasattr(self._live, "cancel"):
            self._live.cancel(sent.theirs)

    def close(self) -> None:
        """Close the live executor."""
        self._recorder.received(self._delivered)
        self._live.close()

    def _release(self) -> None:
        """Send what was held: first what has ended before the restart, in the order in which it ended."""
        if not self._holding:
            return
        self._holding = False
        ended: list[tuple[float, int]] = []
        for ticket, sent in self._sent.items():
            known = self._recorder.log.finished(sent.action.ticket, sent.action.digest)
            if known is not None and not sent.cancelled:
                ended.append((known.ended, ticket))
        for _, ticket in sorted(ended):
            self._pass_on(ticket)

    def _pass_on(self, ticket: int) -> None:
        sent = self._sent[ticket]
        sent.theirs = self._live.send(sent.env_index, sent.action)
        self._mine[sent.theirs] = ticket
        if sent.cancelled:
            self.cancel(ticket)

    def _arrive(self, result: StepResult) -> StepResult | None:
        """Take a result of the live executor; None when the step is tried again."""
        ticket = self._mine.pop(result.ticket)
        sent = self._sent[ticket]
        sent.theirs = None
        if "execution" not in result.info:
            # The environment never saw the end of this step, so nobody has recorded it.
            task = self._tasks[sent.env_index]
            self._recorder.failed(sent.action, task, sent.env_index, str(result.obs), dict(result.info))
        failed = result.info.get("outcome") == Outcome.INFRASTRUCTURE_ERROR
        if failed and not sent.cancelled and sent.action.attempt <= self._retries:
            sent.failure = result
            sent.due = time.monotonic() + self._pause * 2.0 ** (sent.action.attempt - 1)
            sent.action = sent.action.again()
            self.attempts_repeated += 1
            return None
        return self._deliver(ticket, result)

    def _deliver(self, ticket: int, result: StepResult) -> StepResult:
        sent = self._sent.pop(ticket)
        if sent.action.ticket >= 0:
            self._delivered.append(sent.action.ticket)
        return replace(result, ticket=ticket)
