"""The paper's protocol on a real task: with the policy that ships, and with programs whose order is known."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import mle_gym
from mle_gym import cli
from mle_gym.sandbox.base import SandboxUnavailable
from tests.envs.programs import COPY, answer
from trainers.common.policy import Policy
from trainers.common.sample import Generation
from trainers.protocol.improve_once import best_of_n, improve_once
from trainers.protocol.session import Session, token_limits

TASK = "mle_gym/credit-default-v0"
FIT = """import pandas as pd
from sklearn.linear_model import LogisticRegression
train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
columns = {columns}
x = train[columns].fillna(0)
model = LogisticRegression(max_iter=300).fit((x - x.mean()) / x.std(), train["default"])
z = (test[columns].fillna(0) - x.mean()) / x.std()
pd.DataFrame({{"id": test["id"], "default": model.predict_proba(z)[:, 1]}}).to_csv("submission.csv", index=False)
print("fitted on", len(columns))
"""
WEAK = answer(FIT.format(columns=["Age"]))
GOOD = answer(FIT.format(columns=["Seniority", "Income", "Amount", "Assets"]))
CRASH = answer("1 / 0")


class Scripted:
    """Writes given texts: the first list for the first call, and so on; keeps the prompts."""

    def __init__(self, *calls: Sequence[str]) -> None:
        self.calls = list(calls)
        self.prompts: list[str] = []
        self.temperatures: set[float] = set()

    def generate(
        self, prompts: Sequence[str], *, temperature: float, max_new_tokens: int, seed: int
    ) -> list[Generation]:
        self.prompts.append(prompts[0])
        self.temperatures.add(temperature)
        texts = self.calls.pop(0)
        assert len(texts) == len(prompts)
        return [Generation(prompts[0], text, (1,), (2, 3), (-1.0, -1.0), (0, 0), temperature, True) for text in texts]

    def sync(self, version: int) -> None:
        raise AssertionError("a protocol does not change the policy")


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    try:
        with Session([TASK], {"time_limit": 30.0}, Policy.load("tiny", device="cpu"), slots=2, programs=8) as made:
            yield made
    except SandboxUnavailable as error:
        pytest.skip(str(error))


def script(session: Session, *calls: Sequence[str]) -> Scripted:
    session.generator = Scripted(*calls)  # type: ignore[assignment]
    return session.generator  # type: ignore[return-value]


def scores(session: Session, text: str) -> tuple[float, float]:
    """Public and private score of one program, graded apart from the protocol."""
    script(session, [text])
    (trial,) = session.scratch(TASK, 1)
    path, data = Path(trial["info"]["submission_path"]), mle_gym.get_task(TASK[8:-3]).load()
    return data.grade(path, "public").score, data.grade(path, "private").score


def test_an_improvement_is_kept(session: Session) -> None:
    weak, good = scores(session, WEAK), scores(session, GOOD)
    assert good[0] > weak[0] > 0.5
    policy = script(session, [CRASH, WEAK, answer(COPY)], [GOOD])
    result = improve_once(session, TASK, 3)
    assert (result["scratch"]["samples"], result["scratch"]["valid"]) == (3, 1)
    assert result["scratch"]["outcomes"] == {"scored": 2, "runtime_error": 1}
    best = result["scratch"]["best"]
    assert (best["public_score"], best["private_score"], best["response"]) == (*weak, WEAK)
    assert result["improved"] is True
    assert result["final"] == {"from": "improve", "public_score": good[0], "private_score": good[1]}
    # The policy was shown the program, what it printed and how it scored, at the paper's temperature.
    for part in ("Earlier answer:", "columns = ['Age']", "fitted on 1", f"roc_auc {weak[0]:.5g}"):
        assert part in policy.prompts[1]
    assert policy.temperatures == {0.7}


def test_a_worse_improvement_is_not(session: Session) -> None:
    good = scores(session, GOOD)
    for attempts in ([WEAK], [CRASH], [GOOD]):
        script(session, [GOOD, WEAK], attempts)
        result = improve_once(session, TASK, 2)
        assert result["improved"] is False
        assert result["final"] == {"from": "scratch", "public_score": good[0], "private_score": good[1]}
    script(session, [WEAK], [CRASH, GOOD, WEAK])
    assert improve_once(session, TASK, 1, improvements=3)["final"]["from"] == "improve"


def test_nothing_valid_leaves_nothing_to_improve(session: Session) -> None:
    policy = script(session, [CRASH, answer(COPY)])
    result = improve_once(session, TASK, 2)
    assert (result["scratch"]["best"], result["improve"], result["improved"]) == (None, None, False)
    assert result["final"] == {"from": "", "public_score": None, "private_score": None}
    assert len(policy.prompts) == 1
    script(session, [GOOD, WEAK])
    assert best_of_n(session, TASK, 2)["final"]["from"] == "scratch"


def test_an_early_submission_is_still_there_when_it_is_graded() -> None:
    with Session([TASK], {}, Policy.load("tiny", device="cpu"), slots=1, programs=1000) as many:
        assert len(many.tasks) >= 1000 / 128


def test_sizes_come_from_the_warm_start_then_the_paper(tmp_path: Path) -> None:
    tiny = Policy.load("tiny", device="cpu")
    assert token_limits(tiny, None, None) == (130, 320)
    assert token_limits(tiny, 200, 64) == (200, 64)
    tiny.save(tmp_path)
    assert token_limits(Policy.load(tmp_path), None, None) == (1024, 1024)


def test_feasible(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["feasible", "credit-default", "--samples", "8", "--time-limit", "10", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    row = document["tasks"][TASK]
    assert (document["temperature"], document["samples"], row["samples"]) == (0.7, 8, 8)
    assert sum(row["outcomes"].values()) == 8
    assert row["valid"] == row["outcomes"].get("scored", 0) >= row["beats_sample"]
    # Half of this policy's programs are valid at this temperature: none of 8 has a chance of 1 in 250.
    assert row["feasible"] is True
    assert document["feasible"] == [TASK]
    assert row["data"] == "offline"


def test_a_policy_that_cannot_is_not_feasible(tiny_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["--policy", str(tiny_folder), "--samples", "4", "--max-new-tokens", "3"]
    assert cli.main(["feasible", "tests.trainers.bandit:Bandit-v0", *arguments]) == 0
    assert "tests.trainers.bandit:Bandit-v0" in capfd.readouterr().out
    # A prompt of this suite does not fit its 64 tokens of context.
    assert cli.main(["feasible", "credit-default", *arguments]) == 2
    assert "exceed the model's context of 64; lower token_budget" in capfd.readouterr().err


def test_evaluate_a_policy(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    arguments = ["--ids", "credit-default", "-n", "4", "--time-limit", "10", "--seed", "3"]
    assert cli.main(["evaluate", "tiny", *arguments, "--json", "--out", str(out)]) == 0
    printed = capfd.readouterr().out
    document = json.loads(printed)
    assert document == json.loads(out.read_text())
    row = document["tasks"][TASK]
    assert (document["protocol"], document["samples"], row["scratch"]["samples"]) == ("improve-once", 4, 4)
    if row["scratch"]["best"] is not None:
        assert row["improve"]["samples"] == 1
        assert 0.0 < row["final"]["private_score"] < 1.0
    else:
        assert row["final"]["from"] == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["feasible"], "Name at least one task"),
        (["feasible", "credit-defalt"], "did you mean mle_gym/credit-default-v0"),
        (["feasible", "credit-default", "--samples", "0"], "--samples 0 must be at least 1"),
        (["feasible", "credit-default", "--temperature", "0"], "--temperature 0 must be above 0"),
        (["feasible", "credit-default", "--policy", "./no/such"], "There is no folder no/such"),
        (["feasible", "credit-default", "--set", "reward"], "must look like name=value"),
        (["feasible", "credit-default", "--set", "rewrad=paper"], "did you mean 'reward'"),
        (["feasible", "credit-default", "--reward-split", "pubic"], "did you mean 'public'"),
        (["evaluate"], "Name a run folder or a policy"),
        (["evaluate", "tiny"], "tiny is not a run folder, so name the tasks"),
        (["evaluate", "tiny", "--ids", "credit-default", "-n", "0"], "-n 0 must be at least 1"),
        (["evaluate", "tiny", "--ids", "credit-default", "--protocol", "twice"], "--protocol"),
    ],
)
def test_mistakes_are_one_sentence(arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    output, errors = capfd.readouterr()
    assert message in errors
    assert len(errors.strip().splitlines()) == 1, errors
    assert output == ""


def test_a_run_without_a_policy(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.toml").write_text(f'[env]\nids = ["{TASK}"]\n')
    assert cli.main(["evaluate", str(tmp_path)]) == 2
    assert "has no policy and no checkpoint yet" in capfd.readouterr().err


def test_no_score_is_nan_and_not_zero() -> None:
    empty: dict[str, Any] = {"public_score": None}
    from trainers.protocol.command import _score

    assert (_score(empty, "public_score"), _score(None, "x"), _score({"x": math.nan}, "x")) == ("-", "-", "-")
