"""The catalogue: what is known about each competition, from one data file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from mle_gym.grading.grade import Thresholds

__all__ = ["SPLITS", "Facts", "catalogue"]

SPLITS: tuple[str, ...] = ("lite", "low", "medium", "high", "split75", "dev", "systemcard")
"""Lists of competitions that MLE-bench defines; ``lite`` and ``low`` are the same 22."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One competition's entry."""

    title: str
    category: str
    category_assigned: bool
    """True where MLE-bench's own category is not known and this one was assigned here."""
    kind: str
    """As :attr:`mle_gym.tasks.task.Task.kind`."""
    complexity: str
    """``low``, ``medium``, ``high`` or ``dev``."""
    splits: tuple[str, ...]
    """Which of :data:`SPLITS` it is in."""
    code_competition: bool
    """True where Kaggle took notebooks instead of files."""
    kaggle_medals: bool
    """True where Kaggle itself awarded medals."""
    module: str
    """Name of its module in ``mle_gym.tasks.mlebench.competitions``."""
    description: str
    """Markdown: what the data are and what is to be predicted."""
    metric: str
    higher_is_better: bool
    metric_definition: str
    """How the score is computed, in a sentence or two."""
    answers_file: str
    """Below the prepared folder, as all files here."""
    gold_file: str
    """The perfect submission; often the answers themselves."""
    sample_file: str
    id_column: str
    target: tuple[str, ...]
    """Prediction columns of a submission."""
    sample_score: float | None
    """Score of the sample submission on real data, as MLE-bench's tests expect it."""
    key: tuple[str, ...]
    """Columns of submission and answers that name a row; empty where rows are matched by position."""
    unit: str
    """Answers column whose values are kept together by the reward firewall, or ``column:pattern`` where the group of a
    regular expression is; "" for the key's first column, ``none`` where the answers cannot be cut."""
    stratify: tuple[str, ...]
    """Answers columns whose values both parts of the firewall need."""
    train_files: tuple[str, ...]
    """Labelled files and folders, below the public folder."""
    test_files: tuple[str, ...]
    n_train: int | str | None
    n_test: int | str | None
    md5: Mapping[str, Any]
    """Checksums of MLE-bench's files on real data: ``zip``, and file name -> digest for ``public`` and ``private``."""
    size_gb: float | None
    """Size of the data set, where MLE-bench states it."""
    thresholds: Thresholds | None
    thresholds_source: str
    teams: int | None
    teams_source: str
    best_score: float | None
    worst_score: float | None
    known_issues: tuple[str, ...]
    """Leaks, crowded leaderboards, and oddities of the grader that are kept for compatibility."""


def _facts(entry: dict[str, Any]) -> Facts:
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    if values["sample_score"] is not None:
        values["sample_score"] = float(values["sample_score"])  # "NaN", which JSON has no number for
    if values["thresholds"] is not None:
        values["thresholds"] = Thresholds(**values["thresholds"])
    return Facts(**{field.name: values[field.name] for field in fields(Facts)})


@cache
def catalogue() -> Mapping[str, Facts]:
    """Return Kaggle slug -> facts, all 82 competitions."""
    text = files(__package__).joinpath("catalogue.json").read_text(encoding="utf-8")
    return MappingProxyType({name: _facts(entry) for name, entry in json.loads(text).items()})
