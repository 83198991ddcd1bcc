"""``mle-gym prepare``, ``grade`` and ``tasks --split`` as a user calls them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from mle_gym.tasks.registry import get_task
from mle_gym.tasks.task import TaskUnavailable
from tests.tasks.mlebench.conftest import prepare_cases  # noqa: F401  (a fixture)

from .conftest import Cli

NAME = "aerial-cactus-identification"


@pytest.fixture(scope="module")
def submission(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Answers and a submission that is right half of the time."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "answers.csv").write_text("id,has_cactus\na,1\nb,0\nc,1\nd,0\n")
    (folder / "submission.csv").write_text("id,has_cactus\nd,0.4\na,0.9\nb,0.5\nc,0.4\n")
    return folder / "answers.csv", folder / "submission.csv"


def test_splits(cli: Cli) -> None:
    rows = json.loads(cli("tasks", "--split", "lite", "--json").stdout)
    assert len(rows) == 22
    assert len(json.loads(cli("tasks", "--split", "split75", "--json").stdout)) == 75
    assert len(json.loads(cli("tasks", "--tag", "mlebench", "--json").stdout)) == 82
    wrong = cli("tasks", "--split", "heavy")
    assert wrong.returncode == 2
    assert "the splits are lite" in wrong.stderr


def test_grade_as_json(cli: Cli, submission: tuple[Path, Path]) -> None:
    answers, file = submission
    result = cli("grade", NAME, file, "--answers", answers, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    # Of four pairs of a cactus and none, a beats both, c loses to b and ties with d.
    assert (found["score"], found["valid"], found["error"]) == (0.625, True, "")
    assert found["report"]["score"] == 0.625
    assert found["report"]["valid_submission"] is True


def test_grade_says_why_a_file_is_not_valid(cli: Cli, submission: tuple[Path, Path], tmp_path: Path) -> None:
    answers, _ = submission
    (tmp_path / "bad.csv").write_text("id,has_cactus\na,1\nb,0\nc,x\nd,0\n")
    result = cli("grade", NAME, tmp_path / "bad.csv", "--answers", answers)
    assert result.returncode == 0
    assert result.stdout == "not valid: Column 'has_cactus', row 3: 'x'; expected a number in [0, 1].\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["grade"], "Give a task and a submission"),
        (["grade", NAME, "nowhere.csv"], "There is no file nowhere.csv"),
        (["grade", "nothing", __file__], "There is no environment 'nothing'"),
        (["grade", NAME, __file__, "--split", "both"], "choose all, public or private"),
        (["grade", "--jsonl", "nowhere.jsonl"], "There is no file nowhere.jsonl"),
        (["prepare"], "Name competitions"),
        (["prepare", "nothing"], "There is no environment 'nothing'"),
        (["prepare", NAME, "dogs-vs-cats-redux-kernels-edition", "--raw", "x"], "files of one competition"),
        (["prepare", NAME, "--raw", "nowhere"], "nowhere does not exist"),
    ],
)
def test_mistakes_are_one_sentence(cli: Cli, arguments: list[str | Path], sentence: str) -> None:
    result = cli(*arguments)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") == 1


def test_prepare_then_grade_a_list(cli: Cli, prepare_cases: Path, tmp_path: Path) -> None:  # noqa: F811
    raw = tmp_path / "raw"
    with zipfile.ZipFile(prepare_cases / NAME / "raw.zip") as archive:
        archive.extractall(raw)
    made = cli("prepare", NAME, "--raw", raw, "--data-dir", tmp_path / "data")
    assert made.returncode == 0, made.stderr
    assert made.stderr.count("MLE-bench's has") == len(made.stderr.splitlines()) == 3
    assert "(3 files differ from MLE-bench's)" in made.stdout
    assert "(3 files differ" in cli("prepare", NAME, "--data-dir", tmp_path / "data").stdout  # remembered
    shown = cli("grade", NAME, raw / "train.csv", "--data-dir", tmp_path / "data").stdout
    assert shown.startswith("data: 3 prepared files differ from MLE-bench's")
    marker = tmp_path / "data" / NAME / "prepared" / "marker"
    marker.touch()
    assert cli("prepare", NAME, "--raw", raw, "--data-dir", tmp_path / "data", "--again").returncode == 0
    assert not marker.exists()
    assert sorted(path.name for path in marker.parents[1].iterdir()) == [".lock", "differences.json", "prepared"]
    data = get_task(NAME).load(data="prepared", data_dir=tmp_path / "data")
    lines = [
        {"competition_id": NAME, "submission_path": str(data.sample_path)},
        {"competition_id": NAME, "submission_path": None},
    ]
    (tmp_path / "submission.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    options = ["--output", tmp_path / "reports", "--data-dir", tmp_path / "data"]
    result = cli("grade", "--jsonl", tmp_path / "submission.jsonl", *options)
    assert result.returncode == 0, result.stderr
    assert "total valid submissions: 1" in result.stdout
    (written,) = (tmp_path / "reports").glob("*_grading_report.json")
    assert [entry["score"] for entry in json.loads(written.read_text())["competition_reports"]] == [0.5, None]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "credit-default", __file__, "--seed", "-1"], "--seed -1 is negative"),
        (["run", "credit-default", __file__, "--submission", "/no/where/x.csv"], "lies in none"),
        (["run", "credit-default", "/dev/zero"], "not a regular file"),
        (["run", "credit-default", __file__, "--time-limit", "3e6"], "too long"),
        (["grade", NAME, __file__, "--data-dir", "no/where"], "There is no folder no/where"),
        (["report", "no/where", "--output", "/tmp"], "is a folder"),
        (["sft", "--updates", "-1"], "--updates -1 is too small"),
        (["sft", "--learning-rate", "nan"], "has to be a number above 0"),
        (["sft", "--out", __file__], "cannot be made a folder"),
    ],
)
def test_more_mistakes_are_one_sentence(cli: Cli, arguments: list[str], sentence: str) -> None:
    result = cli(*arguments)
    assert (result.returncode, sentence in result.stderr, "Traceback" in result.stderr) == (2, True, False), result


def test_half_prepared_data_are_not_replaced_by_stand_ins(tmp_path: Path) -> None:
    (tmp_path / NAME / "prepared" / "public").mkdir(parents=True)
    with pytest.raises(TaskUnavailable, match="lacks public or private"):
        get_task(NAME).load(data_dir=tmp_path)


def test_a_data_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TaskUnavailable, match="set MLE_GYM_DATA to a writable folder"):
        get_task(NAME).load(data_dir=tmp_path / "file")
    (tmp_path / "stand-in").mkdir()
    (tmp_path / "stand-in" / "salt").write_bytes(b"\xff\xe8")
    with pytest.raises(TaskUnavailable, match="salt is damaged"):
        get_task(NAME).load(data_dir=tmp_path)
