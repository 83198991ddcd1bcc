"""An executor that answers with recorded completions first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mle_gym.pool import StepResult
from trainers.common.executor import Executor

__all__ = ["Diverged", "Replay", "group_by_recv"]


class Diverged(RuntimeError):
    """The run does not repeat itself: another action was sent than the one recorded."""


class Replay:
    """Answers from a record of completions, then hands over to a live executor.

    Training is a function of its completions: the same seed and the same completions in the same groups give the same
    parameters, bit for bit. So a killed run loses no execution: from its last checkpoint it repeats the updates on the
    recorded completions, and only what was running at the kill is executed again. Nothing is sent to the live
    executor before the record is used up.

    An environment runs one action at a time, so a recorded step is the answer to what its environment was sent.

    Args:
        groups: Recorded samples in the groups in which they were received; keys as in ``samples.jsonl``.
        live: Takes over after the record; its ``reset`` gives the first observations.
    """

    def __init__(self, groups: Iterable[Sequence[Mapping[str, Any]]], live: Executor) -> None:
        self._groups = deque(groups)
        self._live = live
        self._sent: dict[int, tuple[int, str]] = {}
        self._live_tickets: dict[int, int] = {}
        self._cancelled: set[int] = set()
        self._stamps: dict[int, dict[str, float]] = {}
        self._next = 0
        self._handed_over = False

    @property
    def groups_left(self) -> int:
        """Recorded groups not yet replayed."""
        return len(self._groups)

    def reset(self, *, seed: int | None = None) -> Sequence[StepResult]:
        """Reset the live executor."""
        return self._live.reset(seed=seed)

    def send(self, env_index: int, action: str) -> int:
        """Note the action while the record lasts, else send it on."""
        if any(busy == env_index for busy, _ in self._sent.values()):
            raise RuntimeError(f"Environment {env_index} is busy.")
        if not self._groups:
            self._hand_over()
        ticket = self._next
        self._next += 1
        self._sent[ticket] = (env_index, action)
        if self._handed_over:
            self._pass_on(ticket)
        return ticket

    def recv(self, min_ready: int = 1, timeout: float | None = None) -> Sequence[StepResult]:
        """The next recorded group, whatever ``min_ready`` is; afterwards the live executor's results.

        Raises:
            Diverged: A recorded step answers another action than the one sent.
        """
        if self._groups:
            return [self._answer(record) for record in self._groups.popleft()]
        self._hand_over()
        results = []
        for result in self._live.recv(min_ready, timeout):
            ticket = self._live_tickets.pop(result.ticket)
            del self._sent[ticket]
            results.append(replace(result, ticket=ticket))
        return results

    def cancel(self, ticket: int) -> None:
        """Cancel on the live executor, where it can; what is not there yet is cancelled when it gets there."""
        if ticket not in self._sent:
            return
        if not self._handed_over:
            self._cancelled.add(ticket)
        elif hasattr(self._live, "cancel"):
            self._live.cancel(next(theirs for theirs, mine in self._live_tickets.items() if mine == ticket))

    def stamps(self, ticket: int) -> dict[str, float]:
        """When a recorded step was queued, generated, started and ended; asked once, empty for a live one."""
        return self._stamps.pop(ticket, {})

    def close(self) -> None:
        """Close the live executor."""
        self._live.close()

    def _answer(self, record: Mapping[str, Any]) -> StepResult:
        env_index = record["env"]
        ticket = next((key for key, (env, _) in self._sent.items() if env == env_index), None)
        if ticket is None:
            raise Diverged(f"Environment {env_index} has no action for the recorded ticket {record['ticket']}.")
        _, action = self._sent.pop(ticket)
        if action != record["response"]:
            raise Diverged(f"The response of ticket {record['ticket']} differs from the recorded one.")
        names = ("queued", "generated", "started", "ended")
        self._stamps[ticket] = {name: float(record[name]) for name in names if name in record}
        return StepResult(
            ticket,
            env_index,
            record["next_obs"],
            float(record["reward"]),
            record["terminated"],
            record["truncated"],
            record["info"],
            record["next_obs"],
        )

    def _hand_over(self) -> None:
        """Send on what the record did not answer."""
        if self._handed_over:
            return
        self._handed_over = True
        for ticket in self._sent:
            self._pass_on(ticket)
        for ticket in self._cancelled & set(self._sent):
            self.cancel(ticket)

    def _pass_on(self, ticket: int) -> None:
        self._live_tickets[self._live.send(*self._sent[ticket])] = ticket


def group_by_recv(records: Iterable[Mapping[str, Any]], after: int = 0) -> list[list[Mapping[str, Any]]]:
    """Recorded samples in the groups in which they were received, from group number ``after`` on.

    A last group that a kill has cut short is left out.
    """
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for record in records:
        if record["recv"] >= after:
            groups.setdefault(record["recv"], []).append(record)
    return [group for _, group in sorted(groups.items()) if len(group) == group[0]["received"]]
