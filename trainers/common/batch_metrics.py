"""What a batch looked like: rewards, outcomes, milestones, families, durations, ages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mle_gym.instrument.base import MILESTONES
from trainers.common.families import family
from trainers.common.judge import Judge
from trainers.common.sample import Sample

__all__ = ["batch_metrics"]


def batch_metrics(samples: Sequence[Sample], judge: Judge, version: int) -> dict[str, Any]:
    """Describe the samples of a batch.

    Args:
        samples: The batch.
        judge: Says which are valid.
        version: The policy's version before the update; a sample's lag is this less its own version.
    """
    rewards = np.array([sample.reward for sample in samples])
    durations = np.array([sample.duration for sample in samples])
    lags = np.array([version - sample.version for sample in samples])
    valid = np.array([judge.valid(sample.task, sample.info) for sample in samples])
    reached = [sample.info.get("milestones") for sample in samples]
    flags = np.array([row for row in reached if isinstance(row, list) and len(row) == len(MILESTONES)], dtype=float)
    metrics: dict[str, Any] = {
        "reward_mean": float(rewards.mean()),
        "reward_max": float(rewards.max()),
        "valid_share": float(valid.mean()),
        "duration_mean": float(durations.mean()),
        "duration_median": float(np.median(durations)),
        "duration_max": float(durations.max()),
        "duration_valid_mean": float(durations[valid].mean()) if valid.any() else None,
        "lag_mean": float(lags.mean()),
        "lag_p95": float(np.quantile(lags, 0.95)),
        "lag_max": int(lags.max()),
        "response_tokens_mean": float(np.mean([len(sample.generation.response_ids) for sample in samples])),
        "unfinished_share": float(np.mean([not sample.generation.finished for sample in samples])),
        "outcomes": dict(Counter(sample.outcome for sample in samples)),
        "families": dict(Counter(family(str(sample.info.get("program", ""))) or "none" for sample in samples)),
    }
    labels = [str(sample.info.get("instrumenter", "")) for sample in samples]
    rewritten = [not label.endswith(":original") for label in labels if label.startswith("llm:")]
    if rewritten:
        metrics["rewritten_share"] = float(np.mean(rewritten))
    if len(flags):
        metrics["milestones"] = dict(zip(MILESTONES, flags.mean(axis=0).tolist(), strict=True))
    tasks = sorted({sample.task for sample in samples})
    if len(tasks) > 1:
        metrics["reward_by_task"] = {
            task: float(np.mean([sample.reward for sample in samples if sample.task == task])) for task in tasks
        }
    return metrics
