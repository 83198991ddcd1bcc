"""Which altered submissions MLE-bench's graders take and which they refuse or trip over, as observed on each."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import mle_gym

from .conftest import CASES, COMPETITIONS

BEHAVIOUR = json.loads((CASES / "behaviour.json").read_text())
Change = Callable[[pd.DataFrame, str, list[str]], pd.DataFrame]


def _unknown(table: pd.DataFrame, key: str) -> str:
    numbers = pd.to_numeric(table[key], errors="coerce").notna().all()
    return "987654321" if numbers else "not an id"


def _cell(value: str) -> Change:
    """Change the first prediction."""
    return lambda table, key, targets: table.assign(**{targets[0]: [value, *table[targets[0]][1:]]})


def _first_id(table: pd.DataFrame, key: str, value: str) -> pd.DataFrame:
    return table.assign(**{key: [value, *table[key][1:]]})


def _new_row(table: pd.DataFrame, key: str) -> pd.DataFrame:
    return pd.concat([table, table.iloc[-1:].assign(**{key: _unknown(table, key)})])


CHANGES: dict[str, Change] = {
    "missing_target_column": lambda table, key, targets: table.drop(columns=targets[0]),
    "missing_id_column": lambda table, key, targets: table.drop(columns=key),
    "one_wrong_id": lambda table, key, targets: _first_id(table, key, _unknown(table, key)),
    "all_wrong_ids": lambda table, key, targets: table.assign(
        **{key: [f"{_unknown(table, key)}{row}" for row in range(len(table))]}
    ),
    "duplicate_id_same_length": lambda table, key, targets: _first_id(table, key, table[key].iloc[1]),
    "duplicated_row_appended": lambda table, key, targets: pd.concat([table, table.iloc[:1]]),
    "nan_in_target": _cell(""),
    "all_nan_target": lambda table, key, targets: table.assign(**dict.fromkeys(targets, "")),
    "missing_last_row": lambda table, key, targets: table.iloc[:-1],
    "extra_row_new_id": lambda table, key, targets: _new_row(table, key),
    "header_only": lambda table, key, targets: table.iloc[:0],
    "shuffled_rows": lambda table, key, targets: table.sample(frac=1.0, random_state=1),
    "reversed_columns": lambda table, key, targets: table[table.columns[::-1]],
    "extra_column": lambda table, key, targets: table.assign(surplus="1"),
    "text_in_numeric_target": _cell("abc"),
    "inf_in_target": _cell("inf"),
    "negative_prob": _cell("-0.1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPETITIONS)
def test_the_same_are_valid(name: str, grading_cases: Path, tmp_path: Path) -> None:
    folder, seen = grading_cases / name, BEHAVIOUR[name]
    table = pd.read_csv(folder / "random.csv", dtype="str", keep_default_na=False)
    key = next(column for column in seen["ids"] if column in table)
    targets = [column for column in seen["targets"] if column in table]
    answers = min(folder.glob("answers.*"))
    wrong = []
    for expected in ("valid", "not_valid"):
        for change in seen[expected]:
            CHANGES[change](table, key, targets).to_csv(tmp_path / "s.csv", index=False)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                grade = mle_gym.grade(name, tmp_path / "s.csv", answers=answers)
            if grade.valid != (expected == "valid") or "cannot be graded" in grade.error:
                wrong.append(f"{change} should be {expected}: {grade}")
    assert not wrong, "\n".join(wrong)
