"""Which earlier program an environment shows: any of its task's best, or the last one of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mle_gym import EnvPool
from mle_gym.pool import StepResult
from tests.envs.programs import answer
from tests.instrument.chat_server import program_in, serve
from trainers.async_ppo.run import run_training
from trainers.common.config import EnvConfig, TrainConfig
from trainers.common.environments import Environments
from trainers.common.schema import build

TASK = "mle_gym/credit-default-v0"
PROGRAM = """import pandas as pd
test = pd.read_csv("input/test.csv")
test["default"] = {sign}test["{column}"].fillna(0)
low, high = test["default"].min(), test["default"].max()
test["default"] = (test["default"] - low) / (high - low)
test[["id", "default"]].to_csv("submission.csv", index=False)
print("used {column}")
"""
GOOD = answer(PROGRAM.format(sign="-", column="Seniority"))
FAIR = answer(PROGRAM.format(sign="-", column="Income"))
POOR = answer(PROGRAM.format(sign="", column="Seniority"))


def environments(**options: Any) -> Environments:
    return Environments(EnvConfig(ids=(TASK,), kwargs={"cores": 0, "token_budget": 600}, improve=1.0, **options))


def play(pool: EnvPool, texts: Sequence[str]) -> list[StepResult]:
    """One program in each environment, in order of the environments; the next prompt is in ``next_obs``."""
    for index, text in enumerate(texts):
        pool.send(index, text)
        # One after another, so that which program comes last is known.
        pool.recv()
    return pool.reset()


def test_the_last_of_the_slot_is_the_slots_own() -> None:
    with EnvPool(environments(archive="last_of_slot").factories(3), slots=1) as pool:
        pool.reset(seed=0)
        starts = play(pool, [GOOD, POOR, "words"])
        # Each sees its own, with what it printed and how it scored; who has none is asked to solve.
        for start, column in zip(starts, ("-test['Seniority']", "test['Seniority']", ""), strict=True):
            text = str(start.next_obs).replace('"', "'")
            assert ("Earlier answer:" in text) == bool(column)
            if column:
                assert f"test['default'] = {column}.fillna" in text
                assert "used Seniority" in text
        # A worse one takes the place of a better one: it is the last, not the best.
        starts = play(pool, [FAIR, "words", GOOD])
        assert "used Income" in str(starts[0].next_obs)
        assert "= test['Seniority']" in str(starts[1].next_obs).replace('"', "'")
        assert "= -test['Seniority']" in str(starts[2].next_obs).replace('"', "'")


def test_top_k_keeps_the_best_of_all() -> None:
    with EnvPool(environments(archive_size=1).factories(3), slots=1) as pool:
        pool.reset(seed=0)
        starts = play(pool, [GOOD, POOR, FAIR])
        shown = [str(start.next_obs).replace('"', "'") for start in starts]
        assert all("= -test['Seniority']" in text and "used Seniority" in text for text in shown)


def record(env: int, program: str, score: float, **more: Any) -> dict[str, Any]:
    info = {"outcome": "scored", "program": program, "plan": "", "terminal_output": "so it was", "score": score, **more}
    return {"task": TASK, "env": env, "info": info}


@pytest.mark.parametrize(
    ("archive", "expected"), [("last_of_slot", ["x = 3", "x = 2", ""]), ("top_k", ["x = 1", "x = 1", "x = 1"])]
)
def test_a_resumed_run_remembers(archive: str, expected: list[str]) -> None:
    made = environments(archive=archive, archive_size=1)
    with EnvPool(made.factories(3), slots=1) as pool:
        made.remember(
            [
                record(0, "x = 1", 0.9),
                record(1, "x = 2", 0.6),
                record(0, "x = 3", 0.5),
                record(2, "x = 4", float("nan"), outcome="timeout"),
            ]
        )
        for start, program in zip(pool.reset(seed=0), expected, strict=True):
            assert program in str(start.next_obs)
            assert ("so it was" in str(start.next_obs)) == ("Earlier answer:" in str(start.next_obs)) == bool(program)


def test_a_slot_outlives_its_environment() -> None:
    made = environments(archive="last_of_slot")
    with EnvPool(made.factories(1), slots=1) as pool:
        pool.reset(seed=0)
        play(pool, [GOOD])
        broken = pool.envs[0]
        assert broken is not None
        broken.unwrapped.step = lambda action: 1 / 0  # type: ignore[method-assign]
        pool.send(0, "anything")
        (failed,) = pool.recv()
        assert failed.info["outcome"] == "infrastructure_error"
        assert pool.envs[0] is not broken
        assert "used Seniority" in str(pool.reset()[0].next_obs)


@pytest.mark.slow
def test_the_papers_arm_from_end_to_end(tmp_path: Path) -> None:
    """Half of the prompts improve, and a language model marks the milestones; with the policy that ships."""

    def mark(prompt: str) -> str:
        program = program_in(prompt)
        # Every second program comes back with more than prints.
        more = "" if len(program) % 2 else "\nimport os"
        return f'```python\n{program}\nprint("wrote submission"){more}\n```'

    with serve(mark) as server:
        options = {"base_url": server.base_url, "model": "base", "cache_dir": ""}
        config = build(
            TrainConfig,
            {
                "env": {
                    "ids": [TASK],
                    "slots": 2,
                    "improve": 0.5,
                    "archive": "last_of_slot",
                    "kwargs": {
                        "token_budget": 130,
                        "time_limit": 4.0,
                        "instrumenter": "llm",
                        "instrumenter_options": options,
                    },
                },
                "generation": {"max_new_tokens": 320, "temperature": 0.7},
                "schedule": {"updates": 3, "batch_size": 8, "evaluate": 0},
                "run": str(tmp_path / "run"),
            },
        )
        assert run_training(config) == 0
    run = Path(config.run)
    samples = [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]
    labels = {sample["info"]["instrumenter"] for sample in samples if sample["info"]["duration"]}
    assert labels == {"llm:forgeable", "llm:forgeable:original"}
    for sample in samples:
        if sample["outcome"] != "scored":
            assert sample["reward"] == pytest.approx(-10 + sample["info"]["partial_credit"])
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert any(0 < row["rewritten_share"] < 1 for row in metrics)
    prompts = [json.loads(line)["prompt"] for line in (run / "prompts.jsonl").read_text().splitlines()]
    assert any("Earlier answer:" in prompt for prompt in prompts)
    assert json.loads((run / "summary.json").read_text())["tasks"][TASK]["data"] == "offline"
