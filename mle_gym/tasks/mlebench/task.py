"""A competition as a task."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from mle_gym.grading.grade import Grade, Split
from mle_gym.tasks.mlebench.catalogue import Facts, catalogue
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.store import cached_folder, data_root
from mle_gym.tasks.task import MissingDependency, Task, TaskUnavailable

if TYPE_CHECKING:
    from mle_gym.tasks.mlebench.data import CompetitionData

__all__ = ["CompetitionTask", "competition_tasks", "find_prepared"]

_MLE_BENCH = Path("~/.cache/mle-bench/data")
"""Where MLE-bench itself prepares."""


def find_prepared(name: str, data_dir: Path | None = None) -> Path | None:
    """Return the folder with a competition's prepared ``public`` and ``private``, or None.

    It is looked for as ``<root>/<name>/prepared``, where root is the argument, or ``$MLE_GYM_DATA``, or
    ``~/.cache/mle_gym``; with neither argument nor variable also where MLE-bench itself prepares.
    """
    roots = [data_root(data_dir)]
    if data_dir is None and not os.environ.get("MLE_GYM_DATA"):
        roots.append(_MLE_BENCH.expanduser())
    for root in roots:
        folder = root / name / "prepared"
        if (folder / "public").is_dir() and (folder / "private").is_dir():
            return folder
    return None


@dataclass(frozen=True)
class CompetitionTask(Task):
    """One of MLE-bench's competitions."""

    facts: Facts = field(kw_only=True, repr=False)

    def load(self, *, data: str = "auto", data_dir: Path | None = None, size: str | None = None) -> CompetitionData:
        """Return the data: prepared ones, or stand-ins that are invented on first use.

        Args:
            data: ``prepared``, ``synthetic``, or ``auto``: prepared data where there are any, else synthetic ones.
            data_dir: Where prepared data live, instead of ``$MLE_GYM_DATA`` or ``~/.cache/mle_gym``.
            size: ``tiny`` or ``small`` (the default) for synthetic data.

        Raises:
            TaskUnavailable: There are no such data here.
            MissingDependency: A package that makes the stand-in data is not installed.
        """
        from mle_gym.tasks.mlebench.data import CompetitionData

        if data not in ("auto", "prepared", "synthetic"):
            raise TaskUnavailable(f"Task {self.name!r} has no {data!r} data; use 'auto', 'prepared' or 'synthetic'.")
        if size is not None and size not in get_args(Size):
            raise TaskUnavailable(f"Stand-in data come in size {' or '.join(map(repr, get_args(Size)))}, not {size!r}.")
        folder = None if data == "synthetic" else find_prepared(self.name, data_dir)
        half = data_root(data_dir) / self.name / "prepared"
        if folder is None and data != "synthetic" and half.exists():
            raise TaskUnavailable(
                f"{half} lacks public or private; prepare anew with `mle-gym prepare {self.name} --again`, or ask for "
                "data='synthetic'."
            )
        if data == "prepared" and folder is None:
            raise TaskUnavailable(
                f"{self.name} is not prepared below {data_root(data_dir)}; run `mle-gym prepare {self.name}`."
            )
        kind = "synthetic" if folder is None else "prepared"
        if folder is None:
            folder = self._stand_in(cast(Size, size or "small"), data_dir)
        sample = folder / self.facts.sample_file
        return CompetitionData(
            task=self,
            kind=kind,
            public_dir=folder / "public",
            sample_submission=sample.name,
            source_paths=(folder / "private",),
            private_dir=folder / "private",
            sample_copy=self._copy_of_sample(sample, data_dir)
            if self.facts.sample_file.startswith("private/")
            else None,
        )

    def grade_with(self, answers: Path, submission: Path, split: Split = "all") -> Grade:
        """Grade against an answers file that the caller names; only ``all`` can be had there."""
        from mle_gym.tasks.mlebench.grader import CompetitionGrader

        return CompetitionGrader(self.name, self.facts, answers).grade(submission, split)

    def _copy_of_sample(self, sample: Path, data_dir: Path | None) -> Path:
        """A few sample submissions lie beside the answers; programs get a copy that lies alone."""
        status = sample.stat()
        place = data_root(data_dir) / "samples" / self.name / f"{status.st_mtime_ns}-{status.st_size}"
        return cached_folder(place, lambda work: shutil.copyfile(sample, work / sample.name)) / sample.name

    def _stand_in(self, size: Size, data_dir: Path | None) -> Path:
        from mle_gym.tasks.mlebench.standin import stand_in_folder

        try:
            return stand_in_folder(self.name, self.facts, size, data_dir)
        except ImportError as error:
            raise MissingDependency(
                f"Stand-in data of {self.name} need the package {error.name!r}; install mle-gym[mlebench]."
            ) from error


def _task(name: str, facts: Facts) -> CompetitionTask:
    return CompetitionTask(
        name=name,
        title=facts.title,
        kind=facts.kind,
        description=facts.description,
        metric=facts.metric,
        higher_is_better=facts.higher_is_better,
        target=facts.target,
        id_column=facts.id_column,
        train_files=facts.train_files,
        test_files=facts.test_files,
        source=f"https://www.kaggle.com/competitions/{name}",
        licence="the competition's rules",
        thresholds=facts.thresholds,
        tags=("mlebench", *facts.splits),
        known_issues=facts.known_issues,
        facts=facts,
    )


@cache
def competition_tasks() -> tuple[CompetitionTask, ...]:
    """Return all 82 competitions."""
    return tuple(_task(name, facts) for name, facts in catalogue().items())
