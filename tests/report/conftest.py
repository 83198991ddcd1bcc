"""A run folder as a training run leaves it, with numbers that a reader can recompute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mle_gym.instrument.base import MILESTONES
from trainers.common.config import AdmissionConfig, EnvConfig, TrainConfig
from trainers.common.jsonlines import JsonLines, write_json

TASK = "mle_gym/credit-default-v0"
LINEAR = "from sklearn.linear_model import LogisticRegression\nLogisticRegression().fit(x, y)\n"
FOREST = "from sklearn.ensemble import RandomForestClassifier\nRandomForestClassifier().fit(x, y)\n"
COPY = "import shutil\nshutil.copy('input/sample_submission.csv', 'submission.csv')\n"


def record(ticket: int, version: int, outcome: str, reward: float, program: str, reached: int, seconds: float) -> Any:
    """A line of ``samples.jsonl`` with what a report reads."""
    return {
        "ticket": ticket,
        "task": TASK,
        "group": 0,
        "version": version,
        "reward": reward,
        "reward_valid": outcome != "infrastructure_error",
        "duration": seconds,
        "outcome": outcome,
        "info": {"program": program, "milestones": [at < reached for at in range(len(MILESTONES))]},
    }


def samples() -> list[Any]:
    """Twenty versions of four programs: in the first ten none is scored, later two of four are."""
    records = []
    for version in range(20):
        late = version >= 10
        plan = [
            ("scored", 0.8, LINEAR, 7, 1.0) if late else ("runtime_error", -9.8, LINEAR, 2, 1.0),
            (
                "scored" if late else "syntax_error",
                0.5 if late else -10.0,
                COPY,
                2 if late else 0,
                0.5 if late else 0.0,
            ),
            ("timeout", -9.6, FOREST, 4, 4.0),
            ("infrastructure_error", 0.0, LINEAR, 0, 0.0),
        ]
        records += [record(4 * version + at, version, *row) for at, row in enumerate(plan)]
    return records


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run."""
    folder = tmp_path / "run"
    folder.mkdir()
    config = TrainConfig(env=EnvConfig(ids=(TASK,)), admission=AdmissionConfig(rule="race"), seed=7)
    (folder / "config.toml").write_text(config.to_toml(), encoding="utf-8")
    lines = JsonLines(folder / "samples.jsonl")
    lines.append(samples())
    lines.close()
    lines = JsonLines(folder / "metrics.jsonl")
    lines.append({"update": n, "seconds": 10.0 * (n + 1), "valid_share": 0.25 * (n >= 10)} for n in range(20))
    lines.close()
    deciles = {
        "edges": [0.5 * n for n in range(11)],
        "launched": [0.1] * 10,
        "trained": [0.19] * 5 + [0.01] * 5,
        "dropped": [0.1] * 10,
    }
    write_json(folder / "audit.json", {"deciles": deciles, "versions": {}})
    facts = {"valid_share_first": 0.0, "valid_share_last": 0.25, "mean_reward_first": -9.8, "mean_reward_last": -2.75}
    summary = {"task": TASK, "tasks": {TASK: {**facts, "best_public_score": 0.8, "best_private_score": 0.7654}}}
    write_json(folder / "summary.json", summary)
    before = {"samples": 64, "valid_share": 0.125, "mean_reward": -8.5, "families": {"linear": 8}}
    after = {"samples": 64, "valid_share": 0.375, "mean_reward": -3.5, "families": {"linear": 18, "forest": 6}}
    tables = {"before": {TASK: before}, "after": {TASK: after}}
    write_json(folder / "evaluation.json", {"tables": tables, "trials": {"before": [], "after": []}})
    best = folder / "best" / TASK.replace("/", "_")
    best.mkdir(parents=True)
    (best / "program.py").write_text(LINEAR + "# <script>alert(1)</script>\n", encoding="utf-8")
    write_json(best / "sample.json", {"task": TASK, "score": 0.8, "version": 12, "duration": 1.0})
    return folder
