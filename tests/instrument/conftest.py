from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mle_gym.grading.grade import Grade, Split
from mle_gym.instrument import make_instrumenter
from mle_gym.sandbox.base import Program
from mle_gym.tasks.task import Task, TaskData

from .harness import WARM, Harness, Run, make_data


@dataclass(frozen=True)
class TableTask(Task):
    def load(self, *, data: str = "auto", data_dir: Path | None = None, size: str | None = None) -> TaskData:
        assert data_dir is not None
        return TableData(self, "offline", data_dir, "sample_submission.csv")


@dataclass(frozen=True)
class TableData(TaskData):
    def grade(self, submission: Path, split: Split = "public") -> Grade:
        raise NotImplementedError

    def sample_score(self, split: Split = "public") -> float:
        raise NotImplementedError

    @property
    def splits(self) -> tuple[Split, ...]:
        return ("all",)


TASK = TableTask("table", "Table", "tabular-binary", "Four columns and a label.", "accuracy", True, ("y",), "id")


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> TaskData:
    folder = tmp_path_factory.mktemp("data") / "public"
    make_data(folder)
    return TASK.load(data_dir=folder)


@pytest.fixture(scope="session")
def warm() -> Iterator[Harness]:
    harness = Harness(WARM)
    yield harness
    harness.close()


@pytest.fixture(scope="session")
def cold() -> Iterator[Harness]:
    harness = Harness([])
    yield harness
    harness.close()


@pytest.fixture
def work(tmp_path: Path, data: TaskData) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "input").symlink_to(data.public_dir)
    return folder


@pytest.fixture
def run(warm: Harness, data: TaskData, work: Path) -> Callable[..., Run]:
    """Run a program with the hooks of ``probe`` in a process forked from a warm one."""

    def run(source: str, *, harness: Harness = warm, **options: float) -> Run:
        return harness.run(make_instrumenter("probe").instrument(source, data), work, **options)

    return run


@pytest.fixture
def run_bare(warm: Harness, work: Path) -> Callable[[str], Run]:
    """Run a program without hooks."""
    return lambda source: warm.run(Program(source), work)
