"""Every grader against checked cases: scores of MLE-bench's own graders, and files that they refuse or trip over."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import mle_gym

from .conftest import COMPETITIONS


@pytest.mark.parametrize("name", COMPETITIONS)
def test_same_score_as_mle_bench(name: str, grading_cases: Path) -> None:
    folder = grading_cases / name
    cases = json.loads((folder / "expected.json").read_text())
    wrong = []
    for case, expected in cases.items():
        if expected.get("fragile"):
            continue
        grade = mle_gym.grade(name, folder / expected["submission"], answers=folder / expected["answers"])
        if not expected["valid"]:
            sentence = grade.error.endswith(".") and "cannot be graded" not in grade.error and len(grade.error) < 400
            if grade.valid or not math.isnan(grade.score) or not sentence:
                wrong.append(f"{case}: expected a sentence that says why it is not valid, got {grade}")
            continue
        score = math.nan if expected["score"] is None else float(expected["score"])
        same = math.isclose(grade.score, score, rel_tol=0.0, abs_tol=1e-9) or (
            math.isnan(score) and math.isnan(grade.score)
        )
        if not grade.valid or not same:
            wrong.append(f"{case}: expected {score}, got {grade}")
    assert not wrong, "\n".join(wrong)
