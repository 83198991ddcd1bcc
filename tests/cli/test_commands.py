"""The built-in commands on real tasks."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from mle_gym.instrument.base import MILESTONES
from mle_gym.tasks.registry import get_task, list_tasks

from .conftest import Cli

PROGRAM = """
import os
import pandas as pd
from sklearn.linear_model import LogisticRegression

train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
submission = pd.read_csv(os.environ["MLE_SAMPLE_SUBMISSION"])
target = submission.columns[1]
columns = [c for c in test.select_dtypes("number").columns if c != submission.columns[0]]
model = LogisticRegression(max_iter=200).fit(train[columns].fillna(0), train[target])
submission[target] = model.predict_proba(test[columns].fillna(0))[:, 1]
submission.to_csv("submission.csv", index=False)
print("written", len(submission))
"""


def test_tasks_as_json_is_the_registry(cli: Cli) -> None:
    result = cli("tasks", "--json")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    assert [row["id"] for row in rows] == [f"mle_gym/{task.name}-v0" for task in list_tasks()]
    assert all(row["licence"] and row["source"] for row in rows)


def test_tasks_by_tag(cli: Cli) -> None:
    result = cli("tasks", "--tag", "regression", "--json")
    rows = json.loads(result.stdout)
    assert rows
    assert all("regression" in row["tags"] for row in rows)
    assert len(rows) < len(list_tasks())


def test_tasks_as_text_names_every_id(cli: Cli) -> None:
    result = cli("tasks")
    for task in list_tasks():
        assert f"mle_gym/{task.name}-v0" in result.stdout


def test_show(cli: Cli) -> None:
    result = cli("show", "credit-default", "--json")
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    task = get_task("credit-default")
    assert facts["metric"] == task.metric
    assert facts["prompt"].strip()
    assert {"train.csv", "test.csv"} <= set(facts["files"])
    assert not [name for name in facts["files"] if "answer" in name]
    text = cli("show", "credit-default").stdout
    assert task.title in text
    assert task.licence in text
    assert facts["prompt"].splitlines()[0] in text


def test_show_names_folders_and_not_each_file(cli: Cli) -> None:
    files = json.loads(cli("show", "digit-images", "--json").stdout)["files"]
    folder = get_task("digit-images").load().public_dir
    assert set(files) == {f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir()}
    assert files["train/"]["files"] == len(list((folder / "train").iterdir()))


def test_run_scores_a_program(cli: Cli, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    copy = tmp_path / "copy.csv"
    result = cli("run", "credit-default", program, "--json", "--submission", copy)
    assert result.returncode == 0, result.stderr
    info = json.loads(result.stdout)
    assert info["outcome"] == "scored", info["message"]
    # The same file graded without the environment gives the same number.
    grade = get_task("credit-default").load().grade(copy, "public")
    assert info["score"] == pytest.approx(grade.score)
    assert info["reward"] == pytest.approx(grade.score)
    assert grade.score > 0.55
    assert set(info["milestones"]) == set(MILESTONES)
    assert info["milestones"]["wrote_submission"]
    assert 0 < info["duration"] < 60


def test_run_as_text_from_standard_input(cli: Cli) -> None:
    result = cli("run", "credit-default", "-", stdin=PROGRAM)
    assert result.returncode == 0, result.stderr
    assert "outcome      scored" in result.stdout
    assert "written" in result.stdout


def test_run_of_a_failing_program_is_a_success_of_the_command(cli: Cli) -> None:
    result = cli("run", "credit-default", "-", "--json", stdin="import pandas\nraise ValueError('no ```idea```')\n")
    assert result.returncode == 0, result.stderr
    info = json.loads(result.stdout)
    assert info["outcome"] == "runtime_error"
    assert info["score"] is None
    assert -10 <= info["reward"] < -9
    assert "no ```idea```" in info["terminal_output"] + info["message"]


def test_run_takes_a_whole_answer(cli: Cli, tmp_path: Path) -> None:
    answer = tmp_path / "answer.md"
    answer.write_text("I copy the sample.\n", encoding="utf-8")
    info = json.loads(cli("run", "credit-default", answer, "--json").stdout)
    assert (info["outcome"], info["plan"]) == ("no_program", "I copy the sample.")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("no-such-file.py",), "There is no file no-such-file.py"),
        (("-", "--reward", "papr"), "did you mean 'paper'?"),
        (("-", "--time-limit", "-1"), "time_limit"),
        (("-", "--sandbox", "locl"), "locl"),
    ],
)
def test_run_mistakes_are_one_sentence(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    result = cli("run", "credit-default", *arguments, stdin="print(1)")
    assert result.returncode == 2, result.stdout
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr


def test_doctor(cli: Cli) -> None:
    result = cli("doctor", "--json")
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["machine"]["cores"] == len(os.sched_getaffinity(0))
    assert math.isfinite(facts["machine"]["memory_gb"])
    assert set(facts["sandbox"]["enforcement"].values()) <= {"kernel", "polled", "none"}
    assert "network" in facts["sandbox"]["enforcement"]
    assert facts["data"]["tasks"] == len(list_tasks())
    assert "sandbox" in cli("doctor").stdout
