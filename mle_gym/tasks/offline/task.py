"""Tasks on real data that come inside installed packages."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from mle_gym.grading.grade import Grade, Split
from mle_gym.tasks.offline.sources import Source, hidden_paths
from mle_gym.tasks.task import Task, TaskUnavailable

if TYPE_CHECKING:
    from mle_gym.grading.grader import GradingRules
    from mle_gym.tasks.csv_data import CsvTaskData
    from mle_gym.tasks.offline.layout import Prepared

__all__ = ["OfflineTask"]


@cache
def _code_digest() -> str:
    """Digest of the code that prepares data: data made by other code are never taken for this code's."""
    whole = hashlib.sha256()
    for package, name in (
        ("mle_gym.tasks.offline", "recipes.py"),
        ("mle_gym.tasks.offline", "images.py"),
        ("mle_gym.tasks.offline", "layout.py"),
        ("mle_gym.tasks.offline", "table.py"),
        ("mle_gym.grading", "splits.py"),
    ):
        whole.update(files(package).joinpath(name).read_bytes())
    return whole.hexdigest()


@dataclass(frozen=True)
class OfflineTask(Task):
    """A task on a data set inside an installed package. Same package version, same bytes, on every machine."""

    origin: Source = field(kw_only=True)
    """The package files that it is made of."""
    recipe: str = field(kw_only=True)
    """``module:function`` below ``mle_gym.tasks.offline``; the function makes a ``Prepared`` of the origin's paths."""
    labels: tuple[str, ...] = field(default=(), kw_only=True)
    """Labels in order, for metrics that take labels."""
    public_fraction: float = field(default=0.5, kw_only=True)
    """Share of the test units in the public part."""
    version: int = field(default=1, kw_only=True)
    """Raise when the recipe changes: split, ids and firewall salt follow."""

    @property
    def rules(self) -> GradingRules:
        """How submissions are graded."""
        from mle_gym.grading.grader import GradingRules

        return GradingRules(
            metric=self.metric,
            id_column=self.id_column,
            target=self.target,
            salt=f"{self.name}/{self.version}/firewall",
            labels=self.labels,
            public_fraction=self.public_fraction,
            thresholds=self.thresholds,
        )

    def load(self, *, data: str = "auto", data_dir: Path | None = None, size: str | None = None) -> CsvTaskData:
        """Return the data, preparing them on first use.

        Args:
            data: ``auto`` or ``offline``; an offline task has one set of data.
            data_dir: Where prepared data live, instead of ``$MLE_GYM_DATA`` or ``~/.cache/mle_gym``.
            size: Must be None.

        Raises:
            MissingDependency: The package with the data is not installed.
            TaskUnavailable: Other data were asked for, or the data folder cannot be written.
        """
        from mle_gym.tasks.csv_data import CsvTaskData
        from mle_gym.tasks.store import cached_folder, data_root, data_version

        if data not in ("auto", "offline"):
            raise TaskUnavailable(f"Task {self.name!r} has no {data!r} data; use data='auto'.")
        if size is not None:
            raise TaskUnavailable(f"Task {self.name!r} has one size; leave out size={size!r}.")
        key = f"{self.version}/{self.name}/{self.origin.digest()}/{_code_digest()}"
        place = data_root(data_dir) / "offline" / self.name / hashlib.sha256(key.encode()).hexdigest()[:16]
        folder = cached_folder(place, self._build)
        return CsvTaskData(
            task=self,
            kind="offline",
            public_dir=folder / "public",
            sample_submission="sample_submission.csv",
            source_paths=(*hidden_paths(self.origin), folder / "private"),
            rules=self.rules,
            answers=folder / "private" / "answers.csv",
            data_version=data_version(folder),
        )

    def grade_with(self, answers: Path, submission: Path, split: Split = "all") -> Grade:
        """Grade against an answers file that the caller names; see :class:`mle_gym.grading.grader.Grader`."""
        from mle_gym.grading.grader import Grader

        return Grader(self.rules, answers).grade(submission, split)

    def _build(self, folder: Path) -> None:
        from mle_gym.tasks.offline.layout import write

        module, function = self.recipe.split(":")
        make: Callable[[tuple[Path, ...], str], Prepared] = getattr(
            importlib.import_module(f"mle_gym.tasks.offline.{module}"), function
        )
        write(self, make(self.origin.paths(), f"{self.name}/{self.version}"), folder)
