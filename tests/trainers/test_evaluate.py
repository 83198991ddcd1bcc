"""Evaluation and judging with real programs on a real task, against the task's own grades."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import mle_gym
from mle_gym.sandbox.base import SandboxUnavailable
from trainers.common.evaluate import evaluate, table
from trainers.common.judge import Judge
from trainers.common.sample import Generation

TASK = "mle_gym/credit-default-v0"
FIT = """I fit a logistic regression on the numbers.

```python
import pandas as pd
from sklearn.linear_model import LogisticRegression
train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
x = train.drop(columns=["id", "default"]).select_dtypes("number").fillna(0)
model = LogisticRegression(C={c}, max_iter=200).fit((x - x.mean()) / x.std(), train["default"])
z = (test[x.columns].fillna(0) - x.mean()) / x.std()
pd.DataFrame({{"id": test["id"], "default": {sign}model.predict_proba(z)[:, 1]}}).to_csv("submission.csv", index=False)
```
"""
COPY = """I copy the sample.

```python
import os, shutil
shutil.copyfile(os.environ["MLE_SAMPLE_SUBMISSION"], "submission.csv")
```
"""
CRASH = "I divide.\n\n```python\n1 / 0\n```\n"
GOOD, WORSE, REVERSED = FIT.format(c=1.0, sign=""), FIT.format(c=1e-9, sign=""), FIT.format(c=1.0, sign="1 - ")


class Scripted:
    """Writes given texts in turn; greedy is the last one."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)

    def generate(
        self, prompts: Sequence[str], *, temperature: float, max_new_tokens: int, seed: int
    ) -> list[Generation]:
        texts = [self.texts[-1]] if temperature == 0 else self.texts[: len(prompts)]
        return [Generation(prompts[0], text, (1,), (2, 3), (-1.0, -1.0), (0, 0), temperature, True) for text in texts]

    def sync(self, version: int) -> None:
        raise AssertionError("an evaluation does not change the policy")


@pytest.fixture(scope="module")
def pool() -> Iterator[mle_gym.EnvPool]:
    try:
        with mle_gym.EnvPool([TASK] * 2, slots=1) as made:
            yield made
    except SandboxUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def judged(pool: mle_gym.EnvPool) -> tuple[dict[str, Any], list[Any], Judge]:
    judge = Judge([TASK], {})
    texts = [COPY, GOOD, CRASH, REVERSED, GOOD]
    first = pool.reset(seed=0)[0].next_obs
    tables, trials = evaluate(
        pool, [TASK] * 2, {TASK: first}, Scripted(texts), judge, samples=5, max_new_tokens=9, seed=0
    )
    return tables[TASK], trials, judge


def test_only_a_fitted_model_that_beats_the_sample_is_valid(judged: tuple[dict[str, Any], list[Any], Judge]) -> None:
    numbers, trials, judge = judged
    verdicts = {trial["response"]: judge.valid(TASK, trial["info"]) for trial in trials}
    assert verdicts == {COPY: False, GOOD: True, CRASH: False, REVERSED: False}
    outcomes = {trial["response"]: trial["info"]["outcome"] for trial in trials}
    assert outcomes == {COPY: "scored", GOOD: "scored", CRASH: "runtime_error", REVERSED: "scored"}
    assert numbers["samples"] == 5
    assert numbers["valid_share"] == pytest.approx(2 / 5)
    assert numbers["outcomes"] == {"scored": 4, "runtime_error": 1}
    assert numbers["families"] == {"linear": 2}
    assert numbers["greedy_valid"] is True


def test_scores_are_those_of_the_task(judged: tuple[dict[str, Any], list[Any], Judge]) -> None:
    numbers, trials, _ = judged
    data = mle_gym.get_task(TASK).load()
    good = next(trial for trial in trials if trial["response"] == GOOD)
    submission = Path(good["info"]["submission_path"])
    assert numbers["best_public_score"] == data.grade(submission, "public").score
    assert numbers["best_private_score"] == data.grade(submission, "private").score
    assert numbers["best_public_score"] != numbers["best_private_score"]
    assert 0.6 < numbers["best_private_score"] < 0.9
    assert numbers["mean_reward"] == pytest.approx(sum(trial["reward"] for trial in trials if not trial["greedy"]) / 5)


def test_infrastructure_failures_are_left_out(judged: tuple[dict[str, Any], list[Any], Judge]) -> None:
    _, trials, judge = judged
    failed = {**trials[0], "info": {**trials[0]["info"], "reward_valid": False, "outcome": "infrastructure_error"}}
    drawn = [trial for trial in trials if not trial["greedy"]]
    assert table([*drawn, failed], judge)["valid_share"] == table(drawn, judge)["valid_share"]
    assert table([*drawn, failed], judge)["failed_infrastructure"] == 1
    empty = table([failed], judge)
    assert math.isnan(empty["valid_share"])
    assert empty["samples"] == 0


def test_lower_is_better_is_turned_around() -> None:
    judge = Judge(["mle_gym/concrete-strength-v0"], {})
    assert judge.gain("mle_gym/concrete-strength-v0", 3.0) == -3.0
    assert judge.gain(TASK, 3.0) == 3.0
    assert math.isnan(judge.gain(TASK, None))
    flags = [True] * 7
    score = mle_gym.get_task("concrete-strength").load().sample_score("public")
    info = {"outcome": "scored", "milestones": flags, "score": score}
    assert not judge.valid("mle_gym/concrete-strength-v0", info)
    assert judge.valid("mle_gym/concrete-strength-v0", {**info, "score": score - 0.1})
    assert not judge.valid("mle_gym/concrete-strength-v0", {**info, "score": score + 0.1})
    assert not judge.valid("mle_gym/concrete-strength-v0", {**info, "score": 0.0, "milestones": [False] * 7})


def test_private_scores_need_a_submission(tmp_path: Path) -> None:
    judge = Judge([TASK], {})
    assert math.isnan(judge.private_score(TASK, tmp_path / "none.csv"))
    (tmp_path / "bad.csv").write_text("id,default\n")
    assert math.isnan(judge.private_score(TASK, tmp_path / "bad.csv"))
    assert math.isnan(judge.private_score("another", tmp_path / "bad.csv"))
