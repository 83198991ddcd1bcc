from __future__ import annotations

import csv
import dataclasses
import math
import re
import shutil
from pathlib import Path

import pytest

from mle_gym.attempt import Attempt
from mle_gym.prompts import MIN_TOKEN_BUDGET, characters, render_improve, render_solve, tokens
from mle_gym.sandbox.base import Limits
from mle_gym.tasks import Task, TaskData, get_task, list_tasks

LIMITS = Limits(time=90.0, memory_mb=1500, cores=2)
PACKAGES = ("numpy", "scikit-learn")
BUDGETS = (64, 80, 100, 133, 200, 300, 512, 1024, 4096)
ATTEMPT = Attempt(program="import numpy\nprint(1)\n", plan="Count.", terminal_output="1", score=0.625)


def _load(name: str) -> tuple[Task, TaskData]:
    task = get_task(name)
    return task, task.load()


@pytest.fixture(scope="module")
def credit() -> tuple[Task, TaskData]:
    return _load("credit-default")


@pytest.mark.parametrize("name", [task.name for task in list_tasks("offline")])
@pytest.mark.parametrize("budget", BUDGETS)
def test_every_prompt_fits_and_names_the_essentials(name: str, budget: int) -> None:
    task, data = _load(name)
    attempt = dataclasses.replace(ATTEMPT, program="x = 1\n" * 2000, terminal_output="y\n" * 5000, plan="z" * 3000)
    for text in (
        render_solve(task, data, LIMITS, budget, packages=PACKAGES),
        render_improve(task, data, LIMITS, budget, ATTEMPT, packages=PACKAGES),
        render_improve(task, data, LIMITS, budget, attempt, packages=PACKAGES),
    ):
        assert tokens(text) <= budget
        assert text.startswith(f"# {task.title}") or task.title in text
        assert f"metric: {task.metric}, {'higher' if task.higher_is_better else 'lower'} is better" in text
    assert "submission.csv" in render_solve(task, data, LIMITS, budget)


def test_the_same_text_every_time(credit: tuple[Task, TaskData]) -> None:
    texts = {render_solve(*credit, LIMITS, 300, packages=PACKAGES) for _ in range(3)}
    assert len(texts) == 1


def test_a_small_budget_still_names_files_columns_and_target(credit: tuple[Task, TaskData]) -> None:
    text = render_solve(*credit, LIMITS, 133)
    assert len(text) <= 400
    assert "input/train.csv, 2452 rows: target default | id id | num Seniority, " in text
    assert "Income?" in text
    assert "cat Home?" in text
    assert "input/test.csv, 2000 rows: the same columns without default" in text
    assert "write submission.csv: id,default" in text


def test_a_large_budget_says_everything(credit: tuple[Task, TaskData]) -> None:
    task, data = credit
    text = render_solve(task, data, LIMITS, 4096, packages=PACKAGES)
    for part in (
        task.description,
        "limits: 90 s, 1500 MiB memory, 2 CPU cores, no GPU, no internet",
        "packages: numpy, scikit-learn",
        "exactly one ```python code block",
        "3 to 5 plain sentences",
    ):
        assert part in text
    for name in ("train.csv", "test.csv", data.sample_submission):
        with (data.public_dir / name).open(encoding="utf-8") as file:
            assert file.readline().rstrip() + "\n" + file.readline().rstrip() in text


def test_what_it_says_of_the_tables_is_true(credit: tuple[Task, TaskData]) -> None:
    _, data = credit
    text = render_solve(*credit, LIMITS, 1024)
    with (data.public_dir / "train.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert f"input/train.csv, {len(rows)} rows" in text
    line = re.search(r"input/train\.csv.*", text)
    assert line is not None
    for kind, names in re.findall(r"\| (num|cat) ([^|\n]*)", line[0]):
        for name in names.strip().split(", "):
            values = [row[name.rstrip("?")] for row in rows]
            assert ("" in values) == name.endswith("?"), name
            numeric = all(re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", value) for value in values if value)
            assert numeric == (kind == "num"), name
    with (data.public_dir / "test.csv").open(encoding="utf-8", newline="") as file:
        assert [*next(csv.reader(file)), "default"] == list(rows[0])


def test_packages_are_told_only_where_known(credit: tuple[Task, TaskData]) -> None:
    assert "packages" not in render_solve(*credit, LIMITS, 4096)
    assert "packages: the standard library only" in render_solve(*credit, LIMITS, 4096, packages=())


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(cores=0), "shared CPU cores, no GPU"),
        (Limits(cores=1, gpus=1), "1 CPU core, 1 GPU"),
        (Limits(cores=4, gpus=2, time=0.5), "limits: 0.5 s, 2048 MiB memory, 4 CPU cores, 2 GPUs"),
    ],
)
def test_limits_in_words(credit: tuple[Task, TaskData], limits: Limits, words: str) -> None:
    assert words in render_solve(*credit, limits, 1024)


def test_target_that_the_submission_splits_into_classes() -> None:
    task, data = _load("leaf-species")
    assert "species" not in task.target
    assert "target species" in render_solve(task, data, LIMITS, 4096)


def test_folders_are_counted() -> None:
    task, data = _load("digit-images")
    count = len(list((data.public_dir / "train").iterdir()))
    text = render_solve(task, data, LIMITS, 1024)
    assert f"input/train/: {count} files .png" in text
    assert "file file" in text


def test_improve_shows_the_attempt(credit: tuple[Task, TaskData]) -> None:
    text = render_improve(*credit, LIMITS, 1024, ATTEMPT)
    assert "```python\nimport numpy\nprint(1)\n```" in text
    assert "It ended with: roc_auc 0.625." in text
    assert "Its output:\n```\n1\n```" in text
    assert "Count." in text
    assert "repeat all code you keep" in text


def test_improve_shows_how_it_failed(credit: tuple[Task, TaskData]) -> None:
    failed = Attempt(program="x", outcome="runtime_error", message="Exit code 1.", terminal_output="NameError: x")
    text = render_improve(*credit, LIMITS, 1024, failed)
    assert "It ended with: runtime error. Exit code 1." in text
    assert "NameError: x" in text
    silent = Attempt(program="x", outcome="no_submission", message="There is no submission.csv.")
    assert "submission.csv. It printed nothing." in render_improve(*credit, LIMITS, 1024, silent)
    nothing = Attempt(program="", outcome="no_program", message="The answer has no block.")
    assert "It had no program.\nIt ended with: no program." in render_improve(*credit, LIMITS, 1024, nothing)


def test_improve_keeps_the_whole_program_where_it_fits(credit: tuple[Task, TaskData]) -> None:
    program = "\n".join(f"x{i} = {i}" for i in range(60))
    assert program in render_improve(*credit, LIMITS, 1024, dataclasses.replace(ATTEMPT, program=program))


def test_cuts_are_marked_and_counted(credit: tuple[Task, TaskData]) -> None:
    lines = [f"line {i:04d}" for i in range(1000)]
    output = "\n".join([*lines, "ZeroDivisionError: last"])
    failed = Attempt(program="pass", outcome="runtime_error", terminal_output=output)
    text = render_improve(*credit, LIMITS, 512, failed)
    match = re.search(r"Its output:\n```\n(.*)\n\[(\d+) characters left out\]\n(.*)\n```", text, re.DOTALL)
    assert match is not None
    assert match[1].startswith("line 0000")
    assert match[3].endswith("ZeroDivisionError: last")
    assert len(match[3]) > len(match[1])
    assert len(match[1]) + int(match[2]) + len(match[3]) == len(failed.terminal_output)


def test_fences_inside_a_program_do_not_end_its_block(credit: tuple[Task, TaskData]) -> None:
    text = render_improve(*credit, LIMITS, 1024, Attempt(program='s = """\n```\n"""'))
    assert '````python\ns = """\n```\n"""\n````' in text


def test_tokens_are_thirds_of_characters() -> None:
    assert [tokens("x" * n) for n in (0, 1, 3, 4)] == [0, 1, 1, 2]
    assert tokens("x" * characters(77)) == 77
    assert MIN_TOKEN_BUDGET == 64
    assert math.isnan(Attempt(program="").score)


def test_data_without_tables(credit: tuple[Task, TaskData], tmp_path: Path) -> None:
    task, data = credit
    (tmp_path / "sample_submission.csv").write_text("id,default\n0,0\n", encoding="utf-8")
    bare = dataclasses.replace(data, public_dir=tmp_path)
    assert "write submission.csv: id,default" in render_solve(task, bare, LIMITS, 100)


def test_stand_ins_are_called_so(tmp_path: Path) -> None:
    task = get_task("aerial-cactus-identification")
    data = task.load(data="synthetic", size="tiny", data_dir=tmp_path)
    text = render_solve(task, data, LIMITS, 300)
    assert "The data are invented" in text
    assert "input/train.zip: 97 files .jpg" in text
    assert "columnar cactus" in text


def test_prepared_words_come_last_and_in_full(tmp_path: Path) -> None:
    task = get_task("aerial-cactus-identification")
    made = task.load(data="synthetic", size="tiny", data_dir=tmp_path)
    folder = tmp_path / task.name / "prepared"
    shutil.copytree(made.public_dir.parent, folder)
    words = "## Overview\n\nPrepared words. " + "More. " * 200
    (folder / "public" / "description.md").write_text(words, encoding="utf-8")
    data = task.load(data_dir=tmp_path)
    assert data.kind == "prepared"
    text = render_solve(task, data, LIMITS, 1000)
    assert "Prepared words." in text
    assert "description.md" not in text
    assert "invented" not in text
    assert "Prepared words." not in render_solve(task, data, LIMITS, 130)
