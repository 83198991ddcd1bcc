"""Grading against an answers file: full validation first, then the same rows of answers and submission."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mle_gym.grading.grade import InvalidSubmission, Thresholds
from mle_gym.grading.grader import Grader, GradingRules

RULES = GradingRules("mae", "id", ("y",), "salt", thresholds=Thresholds(0.0, 0.5, 1.0, 2.0))


def answers_file(folder: Path, rows: int = 20, unit: int = 0) -> Path:
    path = folder / "answers.csv"
    head = "id,y,__unit__\n" if unit else "id,y\n"
    lines = (f"r{i},{i}" + (f",u{i // unit}" if unit else "") for i in range(rows))
    path.write_text(head + "\n".join(lines) + "\n")
    return path


def submit(folder: Path, values: list[float], first: int = 0) -> Path:
    path = folder / "submission.csv"
    path.write_text("id,y\n" + "".join(f"r{i},{v}\n" for i, v in enumerate(values, first)))
    return path


def test_each_part_is_graded_alone(tmp_path: Path) -> None:
    grader = Grader(RULES, answers_file(tmp_path))
    # The error of row i is i, so each part's score is the mean of its positions.
    submission = submit(tmp_path, [2.0 * i for i in range(20)])
    parts = {split: grader.rows(split) for split in grader.splits}
    assert sorted([*parts["public"], *parts["private"]]) == list(range(20))
    for split, rows in parts.items():
        assert grader.grade(submission, split).score == pytest.approx(np.mean(rows))
    assert parts["public"].tolist() != list(range(10))


def test_units_stay_whole(tmp_path: Path) -> None:
    grader = Grader(RULES, answers_file(tmp_path, rows=60, unit=3))
    public = set(grader.rows("public").tolist())
    assert len(public) == 30
    assert all(
        ({3 * k, 3 * k + 1, 3 * k + 2} <= public) or not ({3 * k, 3 * k + 1, 3 * k + 2} & public) for k in range(20)
    )


def test_a_fault_outside_the_split_still_invalidates(tmp_path: Path) -> None:
    grader = Grader(RULES, answers_file(tmp_path))
    private = grader.rows("private")[0]
    values = [float(i) for i in range(20)]
    values[private] = float("nan")
    with pytest.raises(InvalidSubmission, match=f"column y row {private + 1}: 'nan'"):
        grader.grade(submit(tmp_path, values), "public")


def test_medals_follow_the_split(tmp_path: Path) -> None:
    grader = Grader(RULES, answers_file(tmp_path))
    values = [float(i) for i in range(20)]
    assert grader.grade(submit(tmp_path, values), "all").medal == "gold"
    for row in grader.rows("private"):
        values[row] += 0.75
    submission = submit(tmp_path, values)
    assert [grader.grade(submission, split).medal for split in grader.splits] == ["gold", "bronze", "silver"]


def test_answers_that_cannot_be_cut_offer_all_only(tmp_path: Path) -> None:
    grader = Grader(RULES, answers_file(tmp_path, rows=3))
    assert grader.splits == ("all",)
    assert grader.grade(submit(tmp_path, [0.0, 1.0, 2.0]), "all").score == 0.0
    with pytest.raises(ValueError, match="Split 'public' does not exist here; choose one of all"):
        grader.grade(submit(tmp_path, [0.0, 1.0, 2.0]), "public")


def test_class_probabilities_are_scaled_before_grading(tmp_path: Path) -> None:
    answers = tmp_path / "answers.csv"
    answers.write_text("id,b,a\n" + "".join(f"r{i},{i % 2},{1 - i % 2}\n" for i in range(12)))
    submission = tmp_path / "submission.csv"
    submission.write_text("id,a,b\n" + "".join(f"r{i},0.398,0.597\n" for i in range(12)))
    grader = Grader(GradingRules("log_loss_multiclass", "id", ("b", "a"), "s"), answers)
    # 0.398 + 0.597 = 0.995, so the classes get 0.4 and 0.6.
    assert grader.grade(submission, "all").score == pytest.approx(-(np.log(0.4) + np.log(0.6)) / 2)
    assert grader.splits == ("public", "private", "all")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,y\nr0,1\nr1,x\n", "could not convert"),
        ("id,y\nr0,1\nr1,inf\n", "not finite"),
        ("id,z\nr0,1\n", "no column 'y'"),
    ],
)
def test_malformed_answers_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "answers.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        Grader(RULES, path)


def test_unknown_labels_in_answers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("id,y\nr0,cat\nr1,cow\n")
    with pytest.raises(InvalidSubmission, match="'cow' is not among the labels"):
        Grader(GradingRules("accuracy", "id", ("y",), "s", labels=("cat", "dog")), path)
