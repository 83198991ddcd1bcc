"""A finished run in a dozen numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trainers.common.config import TrainConfig
from trainers.common.judge import Judge
from trainers.common.run_folder import RunFolder

__all__ = ["summarise"]


def summarise(
    folder: RunFolder,
    judge: Judge,
    config: TrainConfig,
    updates: int,
    wall_seconds: float,
    evaluation: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Compare the start policy's samples with the last ones, and report the best program.

    *First* are all valid-reward samples that the start policy (version 0) wrote, *last* as many of those launched
    last. Samples are counted whether they were trained or dropped, so the admission rule does not colour the numbers.

    Args:
        folder: The run's records.
        judge: Says what is valid and grades privately.
        config: The run's configuration.
        updates: Updates made.
        wall_seconds: Over all restarts.
        evaluation: Tables of the final policy, where it was evaluated.
    """
    records = [record for record in folder.samples.read() if record["reward_valid"]]
    records.sort(key=lambda record: int(record["ticket"]))
    tasks = {task: _task(task, records, folder, judge) for task in dict.fromkeys(config.env.ids)}
    first, last = _first_and_last(records)
    single = next(iter(tasks.values())) if len(tasks) == 1 else {}
    return {
        "task": ", ".join(tasks),
        "seed": config.seed,
        "updates": updates,
        "samples": len(records),
        "wall_seconds": wall_seconds,
        "valid_share_first": _valid_share(first, judge),
        "valid_share_last": _valid_share(last, judge),
        "mean_reward_first": _mean_reward(first),
        "mean_reward_last": _mean_reward(last),
        "best_public_score": single.get("best_public_score", math.nan),
        "best_private_score": single.get("best_private_score", math.nan),
        "tasks": tasks,
        "evaluation": dict(evaluation or {}),
    }


def _task(task: str, records: Sequence[Mapping[str, Any]], folder: RunFolder, judge: Judge) -> dict[str, Any]:
    own = [record for record in records if record["task"] == task]
    first, last = _first_and_last(own)
    best = folder.best(task)
    submission = folder.best_folder(task) / "submission.csv"
    info = own[0]["info"] if own else {}
    return {
        "data": str(info.get("data", "")),
        "reward_split": str(info.get("reward_split", "")),
        "valid_share_first": _valid_share(first, judge),
        "valid_share_last": _valid_share(last, judge),
        "mean_reward_first": _mean_reward(first),
        "mean_reward_last": _mean_reward(last),
        "best_public_score": math.nan if best is None else best["score"],
        # Chosen by its public score; graded privately only here, after training.
        "best_private_score": math.nan if best is None else judge.private_score(task, submission),
    }


def _first_and_last(records: Sequence[Mapping[str, Any]]) -> tuple[list[Any], list[Any]]:
    first = [record for record in records if record["version"] == 0]
    return first, list(records[-len(first) :]) if first else []


def _valid_share(records: Sequence[Mapping[str, Any]], judge: Judge) -> float:
    flags = [judge.valid(record["task"], record["info"]) for record in records]
    return float(np.mean(flags)) if flags else math.nan


def _mean_reward(records: Sequence[Mapping[str, Any]]) -> float:
    return float(np.mean([record["reward"] for record in records])) if records else math.nan
