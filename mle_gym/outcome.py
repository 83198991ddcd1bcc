"""What a step ended in, and the fixed schema of ``info``."""

from __future__ import annotations

from enum import StrEnum
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

__all__ = ["Outcome", "StepInfo"]


class Outcome(StrEnum):
    """How one step ended; exactly one holds.

    ``SCORED`` is the only outcome with a score. ``INFRASTRUCTURE_ERROR`` says that the machine failed, not the
    program: such a step has ``reward_valid=False`` and must be masked, never learned from.
    """

    SCORED = "scored"
    INVALID_SUBMISSION = "invalid_submission"
    NO_SUBMISSION = "no_submission"
    NO_PROGRAM = "no_program"
    SYNTAX_ERROR = "syntax_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    DISK_LIMIT = "disk_limit"
    OUTPUT_LIMIT = "output_limit"
    CANCELLED = "cancelled"
    INFRASTRUCTURE_ERROR = "infrastructure_error"


class StepInfo(TypedDict):
    """The ``info`` of every ``reset`` and ``step``: same keys, same types, always.

    ``nan``, ``""`` and ``False`` stand where there is nothing, because vector environments stack ``info`` by the
    type of the first environment. Nothing here ever comes from the report split.
    """

    duration: float
    """Seconds the program itself ran, from the supervisor's monotonic clock; 0.0 when nothing ran."""
    queue_time: float
    """Seconds spent waiting for a slot or for cores."""
    setup_time: float
    """Seconds to create the sandbox before the program started."""
    grade_time: float
    """Seconds to read and grade the submission."""
    cpu_time: float
    """CPU seconds of the program and all its descendants."""
    peak_memory: float
    """Peak memory, MiB."""
    outcome: str
    """One of :class:`Outcome`."""
    reward_valid: bool
    """False when the infrastructure failed: mask the step."""
    score: float
    """Raw metric on the reward split; nan unless scored."""
    partial_credit: float
    """0.1 for each milestone reached."""
    milestones: NDArray[np.bool_]
    """One flag for each name in ``mle_gym.instrument.MILESTONES``."""
    medal: str
    """``gold``, ``silver``, ``bronze`` or ``""``, on the reward split."""
    percentile: float
    """Leaderboard percentile in [0, 1] on the reward split; nan where no leaderboard is known."""
    data: str
    """``prepared``, ``synthetic`` or ``offline``."""
    reward_split: str
    """``public``, ``private`` or ``all``."""
    instrumenter: str
    """Name of the instrumenter; ``llm:forgeable``, or ``llm:forgeable:original`` where a rewrite was not accepted."""
    sandbox: str
    """Name of the backend and its isolation tier, for example ``local:namespaces``."""
    plan: str
    """The plan found in the action."""
    program: str
    """The program found in the action."""
    terminal_output: str
    """What the program printed, head and tail."""
    message: str
    """One sentence about what went wrong; ``""`` when scored."""
    submission_path: str
    """A host copy of the submission, kept until ``close()``; ``""`` when there is none."""
