"""From a data frame to a task's files: ids, train, test, answers, sample submission, description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mle_gym.grading.grader import UNIT_COLUMN
from mle_gym.grading.metrics import Prediction, get_metric
from mle_gym.grading.splits import cut, hash_rank

if TYPE_CHECKING:
    from mle_gym.tasks.offline.task import OfflineTask

__all__ = ["Prepared", "by_order", "by_rows", "last", "majority", "mean", "median", "one_hot", "write"]

Constant = Callable[["pd.Series[Any]"], Any]
"""From the training answers to what the sample submission predicts for every row."""


def mean(answers: pd.Series[Any]) -> float:
    """Mean to three decimals."""
    return round(float(answers.mean()), 3)


def median(answers: pd.Series[Any]) -> float:
    """Median to three decimals."""
    return round(float(answers.median()), 3)


def majority(answers: pd.Series[Any]) -> Any:
    """Most frequent label, the first in order where several are."""
    counts = answers.value_counts()
    return min(counts.index[counts == counts.max()])


def last(answers: pd.Series[Any]) -> float:
    """The last value."""
    return float(answers.iloc[-1])


@dataclass(frozen=True)
class Prepared:
    """A task's tables, before they are written."""

    train: pd.DataFrame
    """``id``, features, target."""
    test: pd.DataFrame
    """``id``, features."""
    answers: pd.DataFrame
    """A perfect submission, and perhaps the unit of each row in ``__unit__``."""
    constant: Mapping[str, Any]
    """Target column -> the value that the sample submission gives to every row."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Further public files."""


def by_rows(
    frame: pd.DataFrame,
    target: str,
    test_rows: int,
    seed: str,
    constant: Constant,
    *,
    classes: bool = False,
) -> Prepared:
    """Shuffle rows, number them, and set about ``test_rows`` of them aside.

    The shuffle and the choice are ranks of SHA-256 digests, so they never depend on a library's random numbers, and
    neither an id nor a row's place says anything about its answer.

    Args:
        frame: Features and target.
        target: The column to predict.
        test_rows: Rows to predict.
        seed: Decides shuffle and split.
        constant: What the sample submission predicts.
        classes: Whether to keep the classes' shares in train and test.
    """
    order = hash_rank([str(i) for i in range(len(frame))], f"{seed}/order")
    shuffled = frame.iloc[order].reset_index(drop=True)
    labels = [str(v) for v in shuffled[target]] if classes else None
    in_test = cut([str(i) for i in order], f"{seed}/test", labels, test_rows / len(frame))
    return _divide(shuffled, target, in_test, constant, None)


def by_order(
    frame: pd.DataFrame, target: str, test_rows: int, seed: str, constant: Constant, units: pd.Series[str]
) -> Prepared:
    """Set the last ``test_rows`` rows aside, in their order; ids are a permutation, so they do not tell the time.

    ``units`` (same index as ``frame``) names each row's unit for the reward firewall, say its month: neighbours in time
    tell each other's answers.
    """
    frame = frame.reset_index(drop=True)
    ids = np.argsort(hash_rank([str(i) for i in range(len(frame))], f"{seed}/order"))
    in_test = np.arange(len(frame)) >= len(frame) - test_rows
    return _divide(frame, target, in_test, constant, units.reset_index(drop=True), ids)


def _divide(
    frame: pd.DataFrame,
    target: str,
    in_test: np.ndarray[Any, np.dtype[np.bool_]],
    constant: Constant,
    units: pd.Series[str] | None,
    ids: np.ndarray[Any, np.dtype[np.int64]] | None = None,
) -> Prepared:
    frame = frame.copy()
    frame.insert(0, "id", np.arange(len(frame)) if ids is None else ids)
    features = [name for name in frame.columns if name != target]
    answers = frame.loc[in_test, ["id", target]]
    if units is not None:
        answers = answers.assign(**{UNIT_COLUMN: units[in_test]})
    return Prepared(
        train=frame.loc[~in_test, [*features, target]],
        test=frame.loc[in_test, features],
        answers=answers,
        constant={target: constant(frame.loc[~in_test, target])},
    )


def one_hot(prepared: Prepared, target: str, columns: Mapping[str, str]) -> Prepared:
    """Turn label answers into one 0/1 column for each class.

    Args:
        prepared: With labels in ``answers[target]``.
        target: The label column.
        columns: Label -> name of its prediction column, in order.
    """
    answers = prepared.answers[["id"]].copy()
    for label, column in columns.items():
        answers[column] = (prepared.answers[target] == label).astype(int)
    share = round(1 / len(columns), 6)
    return Prepared(prepared.train, prepared.test, answers, dict.fromkeys(columns.values(), share), prepared.files)


def write(task: OfflineTask, prepared: Prepared, folder: Path) -> None:
    """Write ``public/`` (what programs see) and ``private/answers.csv`` (mode 0600) into an empty folder."""
    public, private = folder / "public", folder / "private"
    public.mkdir()
    private.mkdir(mode=0o700)
    sample = prepared.test[["id"]].assign(**{name: prepared.constant[name] for name in task.target})
    for name, table in (
        ("train.csv", prepared.train),
        ("test.csv", prepared.test),
        ("sample_submission.csv", sample),
    ):
        table.to_csv(public / name, index=False, lineterminator="\n")
    for name, data in prepared.files.items():
        (public / name).parent.mkdir(parents=True, exist_ok=True)
        (public / name).write_bytes(data)
    (public / "description.md").write_text(_description(task, prepared), encoding="utf-8")
    for path in (public, *public.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    answers = private / "answers.csv"
    answers.touch(mode=0o600)
    prepared.answers.to_csv(answers, index=False, lineterminator="\n")


_KINDS = {
    Prediction.NUMBER: "a number",
    Prediction.NON_NEGATIVE: "a number >= 0",
    Prediction.SCORE: "a number; only the order of the rows counts",
    Prediction.PROBABILITY: "a probability in [0, 1]",
    Prediction.CLASS_PROBABILITIES: "one probability for each class; a row sums to 1",
}


def _description(task: OfflineTask, prepared: Prepared) -> str:
    metric = get_metric(task.metric)
    better = "higher" if metric.higher_is_better else "lower"
    columns = ", ".join((task.id_column, *task.target))
    kind = f"one of {', '.join(task.labels)}" if task.labels else _KINDS[metric.prediction]
    lines = [
        f"# {task.title}",
        "",
        task.description,
        "",
        "## Files",
        "",
        f"- `train.csv`: {len(prepared.train):,} rows with the answers.",
        f"- `test.csv`: {len(prepared.test):,} rows to predict.",
        f"- `sample_submission.csv`: a valid submission that predicts a constant. Columns: {columns}.",
        "",
        "## Metric",
        "",
        f"{metric.title[0].upper()}{metric.title[1:]} (`{task.metric}`), {better} is better. A prediction is {kind}.",
        "",
        f"Source: {task.source}. Licence: {task.licence}.",
        "",
    ]
    return "\n".join(lines)
