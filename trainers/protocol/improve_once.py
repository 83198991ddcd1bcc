"""The paper's test: the best of n programs from scratch, improved once, and the better of the two kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from trainers.common.evaluate import Trial
from trainers.protocol.session import Best, Session

__all__ = ["best_of_n", "improve_once"]


def best_of_n(session: Session, task: str, samples: int) -> dict[str, Any]:
    """Return what the best of ``samples`` programs is, judged by its public score."""
    trials = session.scratch(task, samples)
    best = session.best(task, trials)
    return {"scratch": {**_counts(session, task, trials), "best": _solution(best)}, "final": _final(best, "scratch")}


def improve_once(session: Session, task: str, samples: int, improvements: int = 1) -> dict[str, Any]:
    """Return the same, after the policy was shown the best program with its output and asked for a better one.

    The better one of the two by *public* score is final; what was there before stays where both are equal. Private
    scores are reported and choose nothing. Where no program from scratch is valid there is nothing to improve.

    Args:
        session: The policy and the environments.
        task: Environment id.
        samples: Programs from scratch.
        improvements: Programs that try to improve the best of them; the paper has 1.
    """
    trials = session.scratch(task, samples)
    first = session.best(task, trials)
    result: dict[str, Any] = {"scratch": {**_counts(session, task, trials), "best": _solution(first)}}
    second: Best | None = None
    if first is not None:
        again = session.improve(task, first.trial, improvements)
        second = session.best(task, again)
        result["improve"] = {**_counts(session, task, again), "best": _solution(second)}
    else:
        result["improve"] = None
    gain = session.judge.gain
    better = (
        first is not None and second is not None and gain(task, second.public_score) > gain(task, first.public_score)
    )
    result["improved"] = better
    result["final"] = _final(second, "improve") if better else _final(first, "scratch")
    return result


def _counts(session: Session, task: str, trials: Sequence[Trial]) -> dict[str, Any]:
    counted = [trial for trial in trials if trial["info"].get("reward_valid", True)]
    return {
        "samples": len(counted),
        "failed_infrastructure": len(trials) - len(counted),
        "valid": sum(session.judge.valid(task, trial["info"]) for trial in counted),
        "mean_reward": float(np.mean([trial["reward"] for trial in counted])) if counted else None,
        "outcomes": dict(Counter(str(trial["info"].get("outcome", "")) for trial in counted)),
    }


def _solution(best: Best | None) -> dict[str, Any] | None:
    if best is None:
        return None
    info = best.trial["info"]
    return {
        "public_score": best.public_score,
        "private_score": best.private_score,
        "reward": best.trial["reward"],
        "duration": info.get("duration"),
        "response": best.trial["response"],
    }


def _final(best: Best | None, origin: str) -> dict[str, Any]:
    if best is None:
        return {"from": "", "public_score": None, "private_score": None}
    return {"from": origin, "public_score": best.public_score, "private_score": best.private_score}
