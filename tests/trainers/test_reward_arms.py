"""The reward arms where they are used: a wrong one is met before training, a program that is cut keeps its credit."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from mle_gym import cli
from mle_gym.grading.grade import Grade, Split, Thresholds
from mle_gym.instrument import MILESTONES
from mle_gym.registration import register_task
from mle_gym.rewards import get_reward
from mle_gym.tasks import registry
from mle_gym.tasks.csv_data import CsvTaskData
from mle_gym.tasks.offline.task import OfflineTask
from mle_gym.tasks.registry import get_task
from tests.envs.programs import answer
from tests.instrument.test_endpoint import dead_url

BOARD = (0.55, 0.6, 0.65, 0.7, 0.75)


class RankedData(CsvTaskData):
    """Real data and real grades, with a leaderboard of five teams beside them."""

    def grade(self, submission: Path, split: Split = "public") -> Grade:
        grade = super().grade(submission, split)
        return dataclasses.replace(grade, percentile=sum(team < grade.score for team in BOARD) / len(BOARD))


class RankedTask(OfflineTask):
    """The task of the package, with a leaderboard and medals."""

    def load(self, **kwargs: Any) -> RankedData:
        data = super().load(**kwargs)
        return RankedData(**{field.name: getattr(data, field.name) for field in dataclasses.fields(data)})


@pytest.fixture(scope="module")
def ranked() -> Iterator[str]:
    task = get_task("credit-default")
    values = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
    thresholds = Thresholds(gold=0.9, silver=0.8, bronze=0.7, median=0.6)
    env_id = register_task(RankedTask(**{**values, "name": "credit-default-ranked", "thresholds": thresholds}))
    yield env_id
    registry._tasks.pop("credit-default-ranked")
    gym.registry.pop(env_id)


FIT = """import time
import pandas as pd
from sklearn.linear_model import LogisticRegression
train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
x = train[["Seniority", "Income"]].fillna(0)
model = LogisticRegression().fit(x, train["default"])
"""
WRITE = """p = model.predict_proba(test[["Seniority", "Income"]].fillna(0))[:, 1]
pd.DataFrame({"id": test["id"], "default": p}).to_csv("submission.csv", index=False)
"""
REACHED = ("imported_packages", "loaded_data", "defined_model", "trained_model")


ARMS = {"paper": -10.0, "normalized": -1.0, "percentile": -1.0, "medal": -1.0}
"""Reward of a program that reached nothing."""


@pytest.mark.parametrize(
    ("program", "more"),
    [
        (FIT + "time.sleep(60)\n" + WRITE, ()),
        # A submission that was written before the cut is no solution, and still a milestone: the kernel saw it.
        (FIT + WRITE + "time.sleep(60)\n", ("predicted_test", "wrote_submission")),
    ],
    ids=["fitted", "written"],
)
def test_what_was_reached_before_the_cut_counts(ranked: str, program: str, more: tuple[str, ...]) -> None:
    env = gym.make(ranked, cores=0, time_limit=5.0)
    env.reset(seed=0)
    _, reward, _, _, info = env.step(answer(program))
    env.close()
    assert info["outcome"] == "timeout"
    reached = {name for name, flag in zip(MILESTONES, info["milestones"], strict=True) if flag}
    assert reached == {*REACHED, *more}
    assert info["partial_credit"] == pytest.approx(0.1 * len(reached))
    assert reward == pytest.approx(-10 + 0.1 * len(reached))
    data = get_task("credit-default-ranked").load()
    for arm, nothing in ARMS.items():
        cut = get_reward(arm).judge(None, info["partial_credit"], data, "public")
        assert cut == pytest.approx(nothing + 0.1 * len(reached))


@pytest.mark.parametrize("arm", ARMS)
def test_the_same_program_in_time_is_paid_by_its_score_alone(ranked: str, arm: str) -> None:
    env = gym.make(ranked, cores=0, reward=arm)
    env.reset(seed=0)
    _, reward, _, _, info = env.step(answer(FIT + WRITE))
    score = info["score"]
    expected = {
        "paper": score,
        "normalized": (score - 0.5) / (0.9 - 0.5),
        "percentile": sum(team < score for team in BOARD) / 5,
        "medal": 1 / 3 if score >= 0.7 else 0.0,
    }
    assert 0.55 < score < 0.8
    assert reward == pytest.approx(expected[arm])
    env.reset()
    assert env.step("words")[1] == ARMS[arm]
    env.close()


def test_a_sample_submission_without_a_score_is_met_early(ranked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RankedData, "sample_score", lambda self, split="public": math.nan)
    data = get_task("credit-default-ranked").load()
    get_reward("medal").check(data, "public")
    with pytest.raises(ValueError, match="reward='normalized' needs a score of the sample submission, which credit-"):
        get_reward("normalized").check(data, "public")


TASK = "mle_gym/credit-default-v0"
SPOOKY = "mle_gym/spooky-author-identification-v0"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([f"env.ids=['{TASK}']", "env.kwargs.reward=percentile"], "'percentile' needs percentile, which"),
        ([f"env.ids=['{TASK}']", "env.kwargs.reward=papr"], "reward='papr' is not known; did you mean 'paper'?"),
        (
            [f"env.ids=['{SPOOKY}']", "env.kwargs.data=synthetic", "env.kwargs.reward=normalized"],
            "reward='normalized' needs gold, which spooky-author-identification does not have on synthetic data",
        ),
        (
            [f"env.ids=['{TASK}']", "env.kwargs.instrumenter=llm", "policy.name=./no/model"],
            "The instrumenter's model is missing. There is no folder no/model",
        ),
        (
            [
                f"env.ids=['{TASK}']",
                "env.kwargs.instrumenter=llm",
                f"env.kwargs.instrumenter_options={{base_url='{dead_url()}', model='m'}}",
            ],
            "cannot be reached (Connection refused); start it or correct base_url",
        ),
    ],
)  # fmt: skip
def test_a_wrong_arm_is_one_sentence_before_training(
    settings: list[str], message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    arguments = [part for setting in settings for part in ("--set", setting)]
    assert cli.main(["train", *arguments, "--run", str(run)]) == 2
    output, errors = capfd.readouterr()
    assert message in errors
    assert len(errors.strip().splitlines()) == 1, errors
    assert output == ""
    assert not run.exists()
