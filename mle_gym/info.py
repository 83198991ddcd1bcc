"""Builds ``info``: the same keys and the same types at every reset and step."""

from __future__ import annotations

import math

import numpy as np

from mle_gym.attempt import Attempt
from mle_gym.instrument import MILESTONES, milestone_flags
from mle_gym.outcome import StepInfo
from mle_gym.response import Response
from mle_gym.sandbox.base import Execution
from mle_gym.verdict import SUBMISSION, Verdict

__all__ = ["OUTPUT_CHARACTERS", "attempt_of", "empty_info", "step_info"]

OUTPUT_CHARACTERS = 16_384
"""Characters of ``terminal_output``: the first and the last half of this many."""


def empty_info(*, data: str = "", reward_split: str = "", instrumenter: str = "", sandbox: str = "") -> StepInfo:
    """Return the ``info`` of a reset: nothing has run yet."""
    return StepInfo(
        duration=0.0,
        queue_time=0.0,
        setup_time=0.0,
        grade_time=0.0,
        cpu_time=0.0,
        peak_memory=0.0,
        outcome="",
        reward_valid=True,
        score=math.nan,
        partial_credit=0.0,
        milestones=np.zeros(len(MILESTONES), dtype=np.bool_),
        medal="",
        percentile=math.nan,
        data=data,
        reward_split=reward_split,
        instrumenter=instrumenter,
        sandbox=sandbox,
        plan="",
        program="",
        terminal_output="",
        message="",
        submission_path="",
    )


def step_info(base: StepInfo, response: Response, execution: Execution, verdict: Verdict, credit: float) -> StepInfo:
    """Return the ``info`` of a step.

    Args:
        base: From :func:`empty_info`; gives what stays the same over an environment's life.
        response: The action, taken apart.
        execution: What the sandbox saw; its defaults where nothing ran.
        verdict: What it came to.
        credit: 0.1 for each milestone reached.
    """
    path = execution.artifacts.get(SUBMISSION)
    grade = verdict.grade
    return {
        **base,
        "duration": float(execution.timing.duration),
        "queue_time": float(execution.timing.queue),
        "setup_time": float(execution.timing.setup),
        "grade_time": float(verdict.grade_time),
        "cpu_time": float(execution.cpu_time),
        "peak_memory": float(execution.peak_memory),
        "outcome": str(verdict.outcome),
        "reward_valid": verdict.reward_valid,
        "score": math.nan if grade is None else float(grade.score),
        "partial_credit": float(credit),
        "milestones": milestone_flags(execution.milestones),
        "medal": "" if grade is None else grade.medal,
        "percentile": math.nan if grade is None else float(grade.percentile),
        "plan": response.plan,
        "program": response.program,
        "terminal_output": _head_and_tail(
            "\n".join(filter(None, (execution.stdout.rstrip(), execution.stderr.rstrip())))
        ),
        "message": verdict.message,
        "submission_path": "" if path is None else str(path),
    }


def attempt_of(info: StepInfo) -> Attempt:
    """Return what an improve prompt shows of a step."""
    return Attempt(
        program=info["program"],
        plan=info["plan"],
        terminal_output=info["terminal_output"],
        score=info["score"],
        outcome=info["outcome"],
        message=info["message"],
    )


def _head_and_tail(text: str) -> str:
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= OUTPUT_CHARACTERS:
        return text
    half = OUTPUT_CHARACTERS // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
