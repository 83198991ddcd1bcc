"""``check_task`` on small real tasks, each broken in one way: it must name what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mle_gym.grading.grade import Grade, Split, Thresholds
from mle_gym.grading.grader import GradingRules
from mle_gym.tasks import Task, TaskData, get_task
from mle_gym.tasks.csv_data import CsvTaskData
from mle_gym.testing import TaskCheckError, check_task

ROWS = 600


@dataclass(frozen=True)
class SmallTask(Task):
    """A regression with 600 test rows, and ways to break it."""

    fault: str = ""
    kind_of_data: str = "offline"
    rules_metric: str = "mae"

    def load(self, *, data: str = "auto", data_dir: Path | None = None, size: str | None = None) -> CsvTaskData:
        assert data_dir is not None
        public, private = data_dir / "public", data_dir / "private"
        public.mkdir()
        private.mkdir()
        rng = np.random.default_rng(0)
        truth = rng.normal(size=ROWS)
        if self.fault == "sorted":
            truth.sort()
        rows = 300 if self.fault == "few" else ROWS
        ids = rng.permutation(2 * ROWS)[:rows]
        if self.fault == "ids tell":
            ids = np.argsort(np.argsort(truth)) + ROWS
        train = pd.DataFrame({"id": np.arange(2 * ROWS, 2 * ROWS + 50), "x": 1.5, "y": 0.5})
        test = pd.DataFrame({"id": ids, "x": rng.normal(size=rows)})
        answers = pd.DataFrame({"id": ids, "y": truth[:rows]})
        sample = answers.assign(y=0.0)
        if self.fault == "copy":
            test["copy"] = -3 * answers["y"]
        if self.fault == "lag":
            test["lag"] = answers["y"].shift(7)
        if self.fault == "target in test":
            test["y"] = 0.0
        if self.fault == "other ids":
            test["id"] += 10_000
        if self.fault == "shared ids":
            train["id"] = ids[:50]
        if self.fault == "bad sample":
            sample = sample.drop(columns="y")
        if self.fault == "sample is best":
            sample = answers
        if self.fault == "constant answers":
            answers["y"] = 1.0
        for name, table in (("train", train), ("test", test), ("sample", sample)):
            table.to_csv(public / f"{name}.csv", index=False)
        if self.fault == "no train":
            (public / "train.csv").unlink()
        if self.fault == "link":
            (public / "link.csv").symlink_to(private / "answers.csv")
        if self.fault == "published":
            answers.to_csv(public / "solution.csv", index=False)
        place = public if self.fault == "inside" else private
        path = place / "answers.csv"
        answers.to_csv(path, index=False)
        path.chmod(0o644 if self.fault == "mode" else 0o600)
        return CsvTaskData(
            task=self,
            kind=self.kind_of_data,
            public_dir=public,
            sample_submission="sample.csv",
            source_paths=(data_dir / "none",) if self.fault == "source" else (),
            rules=GradingRules(self.rules_metric, "id", ("y",), "salt", thresholds=self.thresholds),
            answers=path,
        )


SMALL = SmallTask(
    name="small",
    title="Small",
    kind="tabular-regression",
    description="Predict `y`.",
    metric="mae",
    higher_is_better=False,
    target=("y",),
    id_column="id",
    thresholds=Thresholds(0.1, 0.2, 0.3, 0.4),
)


def test_a_sound_task_passes(tmp_path: Path) -> None:
    assert check_task(SMALL, data_dir=tmp_path) == (
        "words",
        "public files",
        "sample submission",
        "thresholds",
        "answers apart",
        "firewall",
        "order of scores",
        "no leak",
    )


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("few", "its private part has 150 rows; at least 200"),
        ("sorted", "the order of the rows in test.csv tell of the answers"),
        ("ids tell", "its ids tell of the answers"),
        ("copy", "test.csv column copy gives the answers away (correlation 1.0000)"),
        ("target in test", r"test.csv holds the target ['y']"),
        ("other ids", "test.csv and the answers differ in ids"),
        ("shared ids", "train.csv holds test ids"),
        ("bad sample", "its sample submission is not valid: sample.csv has no column 'y'"),
        ("sample is best", "its sample submission earns a medal"),
        ("no train", "train.csv is missing"),
        ("link", "is a symbolic link"),
        ("published", "solution.csv equals the answers"),
        ("inside", "its answers lie in the public folder"),
        ("mode", "its answers have mode 644; expected 600"),
        ("source", "does not exist"),
    ],
)
def test_a_fault_is_named(fault: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(TaskCheckError) as caught:
        check_task(replace(SMALL, fault=fault), data_dir=tmp_path)
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("Task 'small': ")


def test_answers_a_few_rows_on_are_a_leak_in_a_series(tmp_path: Path) -> None:
    series = replace(SMALL, kind="time-series", fault="lag")
    with pytest.raises(TaskCheckError, match=r"column lag gives the answers away 7 rows on \(correlation 1.0000\)"):
        check_task(series, data_dir=tmp_path)


def test_a_series_may_be_in_the_order_of_its_answers(tmp_path: Path) -> None:
    assert "no leak" in check_task(replace(SMALL, kind="time-series", fault="sorted"), data_dir=tmp_path)


@pytest.mark.parametrize(
    ("thresholds", "sentence"),
    [
        (Thresholds(0.3, 0.2, 0.1, 0.4), "not in order"),
        (Thresholds(0.1, 0.2, 0.3, 0.25), "not in order"),
        (Thresholds(-0.1, 0.2, 0.3, 0.4), "its gold threshold cannot be reached"),
        (Thresholds(0.1, 0.2, 5.0, 6.0), "its sample submission earns a medal"),
    ],
)
def test_thresholds(thresholds: Thresholds, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(TaskCheckError, match=sentence):
        check_task(replace(SMALL, thresholds=thresholds), data_dir=tmp_path)


def test_direction(tmp_path: Path) -> None:
    with pytest.raises(TaskCheckError, match="differ in higher_is_better"):
        check_task(replace(SMALL, higher_is_better=True, thresholds=None), data_dir=tmp_path)


def test_answers_that_do_not_tell_predictions_apart(tmp_path: Path) -> None:
    with pytest.raises(TaskCheckError, match=r"shuffled answers score 0\.0 on public, the best score"):
        check_task(replace(SMALL, fault="constant answers", thresholds=None), data_dir=tmp_path)


def test_words(tmp_path: Path) -> None:
    with pytest.raises(TaskCheckError, match="first paragraph of its description has 301 characters"):
        check_task(replace(SMALL, description="x" * 301), data_dir=tmp_path)


def test_few_rows_are_fine_where_the_data_are_not_offline(tmp_path: Path) -> None:
    assert "firewall" in check_task(replace(SMALL, fault="few", kind_of_data="prepared"), data_dir=tmp_path)


def test_data_of_another_class_get_the_checks_that_need_no_answers(data_dir: Path) -> None:
    inner = get_task("concrete-strength").load(data_dir=data_dir)

    @dataclass(frozen=True)
    class OtherData(TaskData):
        def grade(self, submission: Path, split: Split = "public") -> Grade:
            return inner.grade(submission, split)

        def sample_score(self, split: Split = "public") -> float:
            return inner.sample_score(split)

        @property
        def splits(self) -> tuple[Split, ...]:
            return inner.splits

    @dataclass(frozen=True)
    class OtherTask(SmallTask):
        def load(self, **options: object) -> OtherData:  # type: ignore[override]
            return OtherData(self, "prepared", inner.public_dir, inner.sample_submission)

    task = OtherTask(**{**vars(SMALL), "id_column": "id", "thresholds": None})
    assert len(check_task(task)) == 4
