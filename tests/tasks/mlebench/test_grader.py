"""What surrounds the metrics: the reward firewall, medals, percentiles, hostile files, reports."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import mle_gym
from mle_gym.grading.grade import InvalidSubmission, Thresholds
from mle_gym.grading.medals import percentile_from_thresholds
from mle_gym.grading.reports import read_submissions, report, summary, write_summary
from mle_gym.rewards import get_reward
from mle_gym.tasks.mlebench.catalogue import catalogue
from mle_gym.tasks.mlebench.data import CompetitionData
from mle_gym.tasks.registry import get_task

CACTUS = "aerial-cactus-identification"
BARS = Thresholds(gold=0.99, silver=0.95, bronze=0.9, median=0.8)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def stand_in(root: Path) -> CompetitionData:
    data = get_task(CACTUS).load(data="synthetic", size="tiny", data_dir=root)
    assert isinstance(data, CompetitionData)
    return data


@pytest.fixture
def prepared(stand_in: CompetitionData, tmp_path: Path) -> CompetitionData:
    shutil.copytree(stand_in.public_dir.parent, tmp_path / CACTUS / "prepared")
    data = get_task(CACTUS).load(data="prepared", data_dir=tmp_path)
    assert isinstance(data, CompetitionData)
    return data


def _noisy(data: CompetitionData, path: Path) -> pd.DataFrame:
    answers = pd.read_csv(data.answers)
    noise = np.random.default_rng(0).normal(0, 0.6, len(answers))
    frame = answers.assign(has_cactus=(answers["has_cactus"] + noise).clip(0, 1))
    frame.sample(frac=1.0, random_state=1).to_csv(path, index=False)
    return frame


def test_each_part_is_graded_alone(stand_in: CompetitionData, tmp_path: Path) -> None:
    frame = _noisy(stand_in, tmp_path / "s.csv")
    answers, public = pd.read_csv(stand_in.answers), stand_in.grader.public_rows()
    assert 2 <= public.sum() <= len(answers) - 2
    for split, rows in (("public", public), ("private", ~public), ("all", np.ones(len(answers), dtype=bool))):
        expected = roc_auc_score(answers["has_cactus"][rows], frame["has_cactus"][rows])
        assert math.isclose(stand_in.grade(tmp_path / "s.csv", split).score, expected, abs_tol=1e-12)  # type: ignore[arg-type]


def test_the_parts_are_different_rows(stand_in: CompetitionData, tmp_path: Path) -> None:
    answers = pd.read_csv(stand_in.answers)
    truth = answers["has_cactus"]
    right = np.where(stand_in.grader.public_rows(), truth, 1 - truth)  # right on the public rows, wrong on the others
    answers.assign(has_cactus=right).to_csv(tmp_path / "s.csv", index=False)
    found = [stand_in.grade(tmp_path / "s.csv", split).score for split in ("public", "private")]  # type: ignore[arg-type]
    assert found == [1.0, 0.0]


def test_a_fault_in_one_part_is_refused_on_the_other(stand_in: CompetitionData, tmp_path: Path) -> None:
    frame = _noisy(stand_in, tmp_path / "s.csv")
    private = int(np.flatnonzero(~stand_in.grader.public_rows())[0])
    frame.loc[private, "has_cactus"] = 2.0
    frame.to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(InvalidSubmission, match=f"row {private + 1}: '2.0'"):
        stand_in.grade(tmp_path / "bad.csv", "public")


def test_no_medals_on_stand_ins(stand_in: CompetitionData) -> None:
    best = stand_in.grade(stand_in.gold, "all")
    assert (best.score, best.medal) == (1.0, "")
    assert math.isnan(best.percentile)
    for name in ("medal", "percentile"):
        with pytest.raises(ValueError, match="does not have on synthetic data"):
            get_reward(name).check(stand_in, "public")


def test_medals_on_prepared_data(prepared: CompetitionData) -> None:
    best = prepared.grade(prepared.gold, "public")
    assert (best.medal, best.percentile) == ("gold", 0.99)
    sample = prepared.grade(prepared.sample_path, "all")
    assert (sample.score, sample.medal) == (0.5, "")
    assert 0.0 < sample.percentile < 0.5
    get_reward("percentile").check(prepared, "public")


def test_a_leaderboard_makes_percentiles_exact(prepared: CompetitionData, tmp_path: Path) -> None:
    board = tmp_path / CACTUS / "leaderboard.csv"
    board.write_text("team,score\n" + "".join(f"t,{score}\n" for score in (1.0, 0.9, 0.6, 0.5, 0.4)))
    assert prepared.grade(prepared.sample_path, "all").percentile == 0.2
    assert prepared.sample_score("all") == 0.5
    board.write_text("team,points\nt,1\n")
    with pytest.raises(ValueError, match="no column 'score'"):
        prepared.grade(prepared.sample_path, "all")


@given(st.floats(-2, 2), st.floats(-2, 2))
def test_percentile_is_monotone(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert percentile_from_thresholds(low, BARS, True) <= percentile_from_thresholds(high, BARS, True)
    falling = Thresholds(*(-bar for bar in dataclasses.astuple(BARS)))
    assert percentile_from_thresholds(-low, falling, False) == percentile_from_thresholds(low, BARS, True)


def test_percentile_by_hand() -> None:
    found = [percentile_from_thresholds(score, BARS, True) for score in (0.61, 0.8, 0.85, 0.9, 0.925, 0.95, 0.99, 1.0)]
    assert np.allclose(found, [0.25, 0.5, 0.7, 0.9, 0.925, 0.95, 0.99, 0.99])
    assert math.isnan(percentile_from_thresholds(math.nan, BARS, True))


HOSTILE = {
    "empty": b"",
    "spaces": b"  \n \n",
    "binary": bytes(range(256)) * 40,
    "utf-16": "id,has_cactus\na,1\n".encode("utf-16"),
    "latin-1": "id,has_cactus\n\xe9,1\n".encode("latin-1"),
    "ragged": b"id,has_cactus\na,1,2,3\nb\n",
    "open quote": b'id,has_cactus\n"a,1\n',
    "a million columns": b",".join(b"c%d" % i for i in range(10**6)) + b"\n",
    "one long line": b"x" * (5 << 20),
    "twice the same column": b"id,has_cactus,has_cactus\na,1,1\n",
    "no rows": b"id,has_cactus\n",
    "huge numbers": b"id,has_cactus\n" + b"9" * 5000 + b",1\n",
}


@pytest.mark.parametrize(
    "task",
    [n if "lite" in f.splits else pytest.param(n, marks=pytest.mark.slow) for n, f in sorted(catalogue().items())],
)
def test_hostile_files_are_refused_in_a_sentence(task: str, grading_cases: Path, tmp_path: Path) -> None:
    answers = next(iter((grading_cases / task).glob("answers.*")))
    wrong = []
    for name, data in HOSTILE.items():
        (tmp_path / "s.csv").write_bytes(data)
        grade = mle_gym.grade(task, tmp_path / "s.csv", answers=answers)
        sentence = grade.error.endswith(".") and len(grade.error) < 400 and "cannot be graded" not in grade.error
        if grade.valid or not math.isnan(grade.score) or not sentence:
            wrong.append(f"{name}: {grade}")
    assert not wrong, "\n".join(wrong)


def test_what_is_no_file_is_refused(stand_in: CompetitionData, tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "link.csv").symlink_to(stand_in.answers)
    with (tmp_path / "large.csv").open("wb") as file:
        file.truncate(5 << 30)  # sparse: 5 GB that take no room
    for name, said in (("folder", "regular"), ("pipe", "regular"), ("link", "symbolic"), ("large", "5,368,709,120")):
        with pytest.raises(InvalidSubmission, match=said):
            stand_in.grade(tmp_path / f"{name}.csv")


def test_report_has_mle_bench_fields(prepared: CompetitionData, tmp_path: Path) -> None:
    shutil.copyfile(prepared.gold, tmp_path / "gold.csv")
    made = report(CACTUS, tmp_path / "gold.csv", tmp_path)
    assert (made.score, made.gold_medal, made.any_medal, made.silver_medal, made.above_median) == (
        1,
        True,
        True,
        False,
        True,
    )
    assert (made.gold_threshold, made.median_threshold, made.is_lower_better) == (1.0, 0.9991, False)
    nothing = report(CACTUS, None, tmp_path)
    assert (nothing.submission_exists, nothing.valid_submission, nothing.score) == (False, False, None)
    assert nothing.submission_path == "None"
    (tmp_path / "bad.csv").write_text("id\n")
    bad = report(CACTUS, tmp_path / "bad.csv", tmp_path)
    assert (bad.submission_exists, bad.valid_submission, bad.score) == (True, False, None)
    totals = summary([made, nothing, bad])
    assert [totals[key] for key in ("total_runs", "total_runs_with_submissions", "total_valid_submissions")] == [
        3,
        2,
        1,
    ]
    assert (totals["total_gold_medals"], totals["total_medals"], totals["total_above_median"]) == (1, 1, 1)
    path = write_summary([made], tmp_path / "reports")
    assert path.name.endswith("_grading_report.json")
    assert json.loads(path.read_text())["competition_reports"][0]["competition_id"] == CACTUS


def test_submission_lists(tmp_path: Path) -> None:
    listed = tmp_path / "submission.jsonl"
    listed.write_text(
        '# a comment\n\n// another\n{"competition_id": "a", "submission_path": "s.csv", "logs_path": "x"}\n'
        '{"competition_id": "b", "submission_path": null}\n'
    )
    assert [(s.competition_id, s.submission_path) for s in read_submissions(listed)] == [
        ("a", Path("s.csv")),
        ("b", None),
    ]
    for line in ("[]", "{", '{"competition_id": "a"}', '{"competition_id": 1, "submission_path": "x"}'):
        listed.write_text(f"\n{line}\n")
        with pytest.raises(ValueError, match=r"submission.jsonl line 2"):
            read_submissions(listed)


def test_stand_ins_are_not_ranked_in_reports(tmp_path: Path) -> None:
    data = get_task(CACTUS).load(data_dir=tmp_path)
    shutil.copyfile(data.gold, tmp_path / "gold.csv")  # type: ignore[attr-defined]
    made = report(CACTUS, tmp_path / "gold.csv", tmp_path)
    assert (made.score, made.valid_submission, made.any_medal, made.above_median) == (1.0, True, False, False)
    assert data.note.startswith("stand-in data")
