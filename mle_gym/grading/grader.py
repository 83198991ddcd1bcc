"""Grading a submission against a file of answers, split by split."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mle_gym.grading.grade import Grade, InvalidSubmission, Split, Thresholds
from mle_gym.grading.medals import medal
from mle_gym.grading.metrics import Metric, Prediction, get_metric
from mle_gym.grading.splits import CannotCut, cut
from mle_gym.grading.submission import Column, read_submission, read_table

__all__ = ["UNIT_COLUMN", "Grader", "GradingRules"]

UNIT_COLUMN = "__unit__"
"""Column of an answers file that names each row's unit for the reward firewall."""

_MAX_ANSWERS_BYTES = 1 << 32


@dataclass(frozen=True, slots=True)
class GradingRules:
    """How submissions of one task are graded."""

    metric: str
    """A name in :data:`mle_gym.grading.metrics.METRICS`."""
    id_column: str
    target: tuple[str, ...]
    """Prediction columns; several for class probabilities, then in the order of the classes."""
    salt: str
    """Salt of the reward firewall, fixed for a task version."""
    labels: tuple[str, ...] = ()
    """Allowed labels in order, where the metric takes labels."""
    public_fraction: float = 0.5
    """Share of the units in the public part."""
    thresholds: Thresholds | None = None


class Grader:
    """Grades submissions against an answers file.

    The answers file is a perfect submission (one-hot for class probabilities), with an optional column
    ``__unit__`` that names the unit of each row for the reward firewall; without it each row is a unit.

    Args:
        rules: How to grade.
        answers: The answers file.

    Raises:
        InvalidSubmission: The answers file is malformed.
    """

    def __init__(self, rules: GradingRules, answers: Path) -> None:
        self.rules = rules
        self.metric: Metric = get_metric(rules.metric)
        self.columns: tuple[Column, ...] = tuple(
            Column(name, self.metric.prediction, rules.labels) for name in rules.target
        )
        with answers.open(encoding="utf-8") as file:
            header = file.readline().rstrip("\r\n").split(",")
        has_units = UNIT_COLUMN in header
        names = (rules.id_column, *rules.target, *((UNIT_COLUMN,) if has_units else ()))
        table = read_table(answers, rules.id_column, names, _MAX_ANSWERS_BYTES, _MAX_ANSWERS_BYTES)
        self.ids: tuple[str, ...] = tuple(table[rules.id_column])
        self.units: tuple[str, ...] = tuple(table[UNIT_COLUMN]) if has_units else self.ids
        self.answers: NDArray[Any] = self._answers(table, answers.name)
        self._parts = self._cut(self.units)

    def _answers(self, table: dict[str, list[str]], name: str) -> NDArray[Any]:
        if self.metric.prediction is Prediction.LABEL:
            index = {label: i for i, label in enumerate(self.rules.labels)}
            unknown = next((v for v in table[self.rules.target[0]] if v not in index), None)
            if unknown is not None:
                raise InvalidSubmission(f"{name} column {self.rules.target[0]}: {unknown!r} is not among the labels.")
            return np.array([index[v] for v in table[self.rules.target[0]]], dtype=np.int64)
        matrix = np.array([[float(v) for v in table[c]] for c in self.rules.target], dtype=np.float64).T
        if not np.isfinite(matrix).all():
            raise InvalidSubmission(f"{name} holds a value that is not finite.")
        return matrix.argmax(axis=1) if self.metric.prediction is Prediction.CLASS_PROBABILITIES else matrix[:, 0]

    def _cut(self, units: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
        classes = [str(v) for v in self.answers.tolist()] if self.metric.needs_every_class else None
        parts = {"all": np.ones(len(self.ids), dtype=np.bool_)}
        try:
            public = cut(units, self.rules.salt, classes, self.rules.public_fraction)
        except CannotCut:
            return parts
        return {"public": public, "private": ~public, **parts}

    @property
    def splits(self) -> tuple[Split, ...]:
        """Splits that can be graded."""
        return ("public", "private", "all") if len(self._parts) == 3 else ("all",)

    def rows(self, split: Split) -> NDArray[np.int64]:
        """Positions of the split's rows in :attr:`ids`.

        Raises:
            ValueError: The split does not exist here.
        """
        if split not in self._parts:
            raise ValueError(f"Split {split!r} does not exist here; choose one of {', '.join(self.splits)}.")
        return np.flatnonzero(self._parts[split])

    def grade(self, submission: Path, split: Split = "public") -> Grade:
        """Validate the whole file, then grade the split's rows.

        Raises:
            InvalidSubmission: One sentence that says which column, which row and what was expected.
            ValueError: The split does not exist here.
        """
        rows = self.rows(split)
        predictions = read_submission(submission, self.rules.id_column, self.ids, self.columns)
        score = self.metric.compute(self.answers[rows], predictions[rows])
        if not math.isfinite(score):
            raise InvalidSubmission(f"{submission.name}: the {self.metric.title} of these predictions is not finite.")
        higher = self.metric.higher_is_better
        return Grade(score, higher, split, medal(score, self.rules.thresholds, higher))
