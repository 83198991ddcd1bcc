"""Checks that a task is sound: for the tests of this project and of whoever brings a task of their own."""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission, Split
from mle_gym.tasks.csv_data import CsvTaskData
from mle_gym.tasks.mlebench.data import CompetitionData
from mle_gym.tasks.task import Task, TaskData

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TaskCheckError", "check_task"]

_MIN_PRIVATE_ROWS = 200
_LAGS = 60
_CHANCE = 5.0
"""Standard errors of a correlation beyond which it is no chance."""


class TaskCheckError(AssertionError):
    """A task is not sound; one sentence says which task and why."""


def check_task(task: Task, *, data_dir: Path | None = None, size: str | None = None) -> tuple[str, ...]:
    """Check everything about a task that can be checked without solving it.

    Args:
        task: The task; its data are prepared if they are not yet.
        data_dir: Where prepared data live, instead of the default place.
        size: Size of stand-in data, as :meth:`~mle_gym.tasks.task.Task.load` takes it.

    Returns:
        Names of the checks that were made. Those that need the answers are made only where ``task.load`` returns a
        :class:`~mle_gym.tasks.csv_data.CsvTaskData`.

    Raises:
        TaskCheckError: The first thing that is wrong.
        TaskUnavailable: The task's data cannot be had here.
    """
    data = task.load(data_dir=data_dir, size=size)
    checks: list[Callable[[], None]] = [
        lambda: _words(task),
        lambda: _public_files(task, data),
        lambda: _sample(task, data),
        lambda: _thresholds(task, data),
    ]
    names = ["words", "public files", "sample submission", "thresholds"]
    if isinstance(data, CompetitionData):
        competition = data
        checks += [lambda: _competition_apart(task, competition), lambda: _competition_scores(task, competition)]
        names += ["answers apart", "order of scores"]
    if isinstance(data, CsvTaskData):
        csv_data = data
        checks += [
            lambda: _answers_apart(task, csv_data),
            lambda: _firewall(task, csv_data),
            lambda: _order_of_scores(task, csv_data),
            lambda: _no_leak(task, csv_data),
        ]
        names += ["answers apart", "firewall", "order of scores", "no leak"]
    for check in checks:
        check()
    return tuple(names)


def _require(holds: bool, task: Task, problem: str) -> None:
    if not holds:
        raise TaskCheckError(f"Task {task.name!r}: {problem}.")


def _words(task: Task) -> None:
    first = task.description.split("\n\n")[0]
    _require(bool(task.title and first), task, "it needs a title and a description")
    _require(
        len(first) <= 300, task, f"the first paragraph of its description has {len(first)} characters; at most 300"
    )
    _require(bool(task.target) and task.id_column not in task.target, task, "it needs an id and other target columns")


def _public_files(task: Task, data: TaskData) -> None:
    for name in (*task.train_files, *task.test_files):
        _require((data.public_dir / name).exists(), task, f"{name} is missing in {data.public_dir}")
    _require(data.sample_path.is_file(), task, f"its sample submission {data.sample_path} is missing")
    for path in data.public_dir.rglob("*"):
        _require(not path.is_symlink(), task, f"{path} is a symbolic link, which could lead to the answers")
    for path in data.source_paths:
        # In a package folder it may be missing here and there in the interpreter that runs the programs.
        elsewhere = {"site-packages", "dist-packages"}.intersection(path.parts)
        _require(path.exists() or bool(elsewhere), task, f"the source path {path} does not exist")


def _sample(task: Task, data: TaskData) -> None:
    sample = data.sample_path
    _require("all" in data.splits, task, f"its splits {data.splits} lack 'all'")
    for split in data.splits:
        try:
            grade = data.grade(sample, split)
        except InvalidSubmission as error:
            raise TaskCheckError(f"Task {task.name!r}: its sample submission is not valid: {error}") from error
        baseline = data.sample_score(split)
        _require(math.isfinite(baseline), task, f"its sample submission scores {baseline} on {split}")
        _require(grade.higher_is_better == task.higher_is_better, task, "grades and task differ in higher_is_better")
        same = baseline == grade.score or (math.isnan(grade.score) and isinstance(data, CompetitionData))
        _require(same, task, f"sample_score differs from its grade on {split}")


def _thresholds(task: Task, data: TaskData) -> None:
    if task.thresholds is None:
        return
    bars = task.thresholds
    sign = 1 if task.higher_is_better else -1
    if data.kind == "synthetic":
        return  # Invented data have no leaderboard.
    ladder = [sign * bar for bar in (bars.median, bars.bronze, bars.silver, bars.gold)]
    _require(ladder == sorted(ladder), task, f"its thresholds are not in order: {bars}")
    _require(sign * data.sample_score("all") < ladder[1], task, "its sample submission earns a medal")


def _answers_apart(task: Task, data: CsvTaskData) -> None:
    _require(data.public_dir not in data.answers.parents, task, "its answers lie in the public folder")
    mode = data.answers.stat().st_mode & 0o777
    _require(mode == 0o600, task, f"its answers have mode {mode:o}; expected 600")
    answers = data.answers.read_bytes()
    for path in data.public_dir.rglob("*"):
        if path.is_file():
            _require(path.read_bytes() != answers, task, f"{path.name} equals the answers")


def _firewall(task: Task, data: CsvTaskData) -> None:
    grader = data.grader
    _require(len(set(grader.ids)) == len(grader.ids), task, "its answers repeat an id")
    if data.splits == ("all",):
        _require(data.kind != "offline", task, "its answers cannot be cut into a public and a private part")
        return
    public, private = set(grader.rows("public").tolist()), set(grader.rows("private").tolist())
    _require(not public & private, task, "the public and the private part share rows")
    _require(public | private == set(range(len(grader.ids))), task, "the two parts do not hold all rows")
    crossing = {grader.units[i] for i in public} & {grader.units[i] for i in private}
    _require(not crossing, task, f"the unit {next(iter(crossing), '')!r} is in both parts")
    if data.kind == "offline":
        enough = len(private) >= _MIN_PRIVATE_ROWS
        _require(enough, task, f"its private part has {len(private)} rows; at least {_MIN_PRIVATE_ROWS}")
    if grader.metric.needs_every_class:
        for part in (public, private):
            same = set(grader.answers[sorted(part)].tolist()) == set(grader.answers.tolist())
            _require(same, task, "a part lacks a class")


def _order_of_scores(task: Task, data: CsvTaskData) -> None:
    import pandas as pd

    sign = 1 if task.higher_is_better else -1
    with tempfile.TemporaryDirectory() as folder:
        perfect, other = Path(folder) / "perfect.csv", Path(folder) / "other.csv"
        data.write_perfect(perfect)
        table = pd.read_csv(perfect, dtype="str", keep_default_na=False)

        def score(frame: pd.DataFrame, split: Split) -> float:
            frame.to_csv(other, index=False)
            return data.grade(other, split).score

        rng = np.random.default_rng(0)
        mixed_rows = table.iloc[rng.permutation(len(table))]
        wrong = table.copy()
        wrong[list(task.target)] = table[list(task.target)].iloc[rng.permutation(len(table))].to_numpy()
        for split in data.splits:
            best = data.grade(perfect, split).score
            ideal = data.grader.metric.best
            _require(abs(best - ideal) < 1e-6, task, f"the answers themselves score {best} on {split}, not {ideal}")
            _require(data.grade(perfect, split).score == best, task, "grading the same file twice gives two scores")
            _require(score(mixed_rows, split) == best, task, f"the order of the rows changes the score on {split}")
            shuffled = score(wrong, split)
            _require(
                sign * shuffled < sign * best, task, f"shuffled answers score {shuffled} on {split}, the best score"
            )
            sample = data.sample_score(split)
            _require(sign * sample < sign * best, task, f"the sample submission scores {sample}, the best score")
        if task.thresholds is not None:
            best = data.grade(perfect, "all").score
            _require(sign * best >= sign * task.thresholds.gold, task, "its gold threshold cannot be reached")


def _competition_apart(task: Task, data: CompetitionData) -> None:
    _require(not data.private_dir.is_relative_to(data.public_dir), task, "its answers lie in the public folder")
    kept = {path.read_bytes() for path in (data.answers, data.gold)}
    for path in data.public_dir.rglob("*"):
        if path.is_file():
            _require(path.read_bytes() not in kept, task, f"{path.name} equals the answers")


def _competition_scores(task: Task, data: CompetitionData) -> None:
    import pandas as pd

    sign = 1 if task.higher_is_better else -1
    gold = pd.read_csv(data.gold, dtype="str", keep_default_na=False)
    rng = np.random.default_rng(0)
    wrong = gold.copy()
    columns = [name for name in gold.columns if name not in (*data.grader.facts.key, task.id_column)]
    wrong[columns] = gold[columns].iloc[rng.permutation(len(gold))].to_numpy()
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "other.csv"
        wrong.to_csv(other, index=False)
        for split in data.splits:
            best = data.grade(data.gold, split).score
            _require(not math.isnan(best), task, f"the answers themselves score nan on {split}")
            _require(data.grade(data.gold, split).score == best, task, "grading the same file twice gives two scores")
            # One row's answer may not even be valid for another row: the cells of another notebook, say.
            with contextlib.suppress(InvalidSubmission):
                shuffled = data.grade(other, split).score
                _require(
                    len(gold) == 1 or sign * shuffled < sign * best,
                    task,
                    f"shuffled answers score {shuffled} on {split}, as the answers",
                )
            sample = data.sample_score(split)
            _require(sign * sample < sign * best, task, f"the sample submission scores {sample} on {split}, the best")


def _no_leak(task: Task, data: CsvTaskData) -> None:
    import pandas as pd

    tables = [data.public_dir / name for name in task.test_files if name.endswith(".csv")]
    trains = [data.public_dir / name for name in task.train_files if name.endswith(".csv")]
    answers = pd.Series(data.grader.answers, index=list(data.grader.ids))
    for path in tables:
        test = pd.read_csv(path, dtype={task.id_column: "str"})
        _require(task.id_column in test.columns, task, f"{path.name} has no column {task.id_column}")
        found = [name for name in task.target if name in test.columns]
        _require(not found, task, f"{path.name} holds the target {found}")
        _require(set(test[task.id_column]) == set(answers.index), task, f"{path.name} and the answers differ in ids")
        truth = answers.loc[test[task.id_column]].to_numpy()
        series = "time-series" in (task.kind, *task.tags)
        # In a series the order of the rows is time, which is known and does tell of the answers.
        _unrelated(task, "its ids", _numbers(test[task.id_column]), truth)
        if not series:
            _unrelated(task, f"the order of the rows in {path.name}", np.arange(len(test), dtype=np.float64), truth)
        for name in test.columns.drop(task.id_column):
            _not_the_answer(task, f"{path.name} column {name}", test[name], truth, _LAGS if series else 0)
        for train_path in trains:
            shared = set(pd.read_csv(train_path, dtype={task.id_column: "str"})[task.id_column]) & set(answers.index)
            _require(not shared, task, f"{train_path.name} holds test ids, for example {next(iter(shared), '')!r}")


def _numbers(column: pd.Series[Any]) -> NDArray[np.float64]:
    """Numbers as they are, anything else as ranks of its text."""
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce")
    if numbers.isna().all():
        return pd.factorize(column, sort=True)[0].astype(np.float64)
    return numbers.to_numpy(dtype=np.float64)


def _correlation(a: NDArray[Any], b: NDArray[Any]) -> float:
    use = np.isfinite(a) & np.isfinite(b)
    a, b = a[use].astype(np.float64), b[use].astype(np.float64)
    if len(a) < 10 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _unrelated(task: Task, what: str, values: NDArray[np.float64], truth: NDArray[Any]) -> None:
    limit = _CHANCE / math.sqrt(max(len(truth), 1))
    targets = [truth]
    if truth.dtype.kind == "i":
        targets = [truth == label for label in np.unique(truth)]
    for target in targets:
        found = abs(_correlation(values, target.astype(np.float64)))
        _require(found <= limit, task, f"{what} tell of the answers (correlation {found:.2f})")


def _not_the_answer(task: Task, what: str, column: pd.Series[Any], truth: NDArray[Any], lags: int) -> None:
    values = _numbers(column)
    for lag in range(-lags, lags + 1):
        shifted, target = (values[lag:], truth[: len(truth) - lag]) if lag >= 0 else (values[:lag], truth[-lag:])
        found = abs(_correlation(shifted, target))
        where = f" {lag} rows on" if lag else ""
        _require(found < 0.999, task, f"{what} gives the answers away{where} (correlation {found:.4f})")
