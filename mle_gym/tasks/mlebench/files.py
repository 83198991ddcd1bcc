"""What preparers share: reading and writing tables, archives, folders."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from mle_gym.tasks.mlebench.frames import EXACT

__all__ = ["copy_files", "extract", "read_csv", "split_rows", "write_csv", "zip_files"]


def read_csv(path: Path, **options: Any) -> pd.DataFrame:
    """Read a table with floats exact to the last bit."""
    frame: pd.DataFrame = pd.read_csv(path, **{**EXACT, **options})
    return frame


def write_csv(frame: pd.DataFrame, path: Path, **options: Any) -> None:
    """Write a table without its index, making the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, **{"index": False, **options})


def split_rows(rows: Any, **options: Any) -> tuple[Any, Any]:
    """Split rows (a frame, a list) in two with scikit-learn's ``train_test_split``, ``random_state`` 0 unless given."""
    from sklearn.model_selection import train_test_split

    first, second = train_test_split(rows, **{"random_state": 0, **options})
    return first, second


def extract(archive: Path, folder: Path) -> Path:
    """Unpack a zip file into a folder, which is made, and return the folder.

    Raises:
        ValueError: A member would land outside the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    root = folder.resolve()
    with zipfile.ZipFile(archive) as file:
        for member in file.namelist():
            if not (root / member).resolve().is_relative_to(root):
                raise ValueError(f"{archive.name} holds {member!r}, which lies outside of its folder; fetch it anew.")
        file.extractall(folder)
    return folder


def copy_files(files: Iterable[tuple[Path, Path]]) -> None:
    """Copy each source to its destination, making folders on the way."""
    made: set[Path] = set()
    for source, destination in files:
        if destination.parent not in made:
            destination.parent.mkdir(parents=True, exist_ok=True)
            made.add(destination.parent)
        shutil.copyfile(source, destination)


def zip_files(archive: Path, members: Iterable[tuple[Path, str]], *, compression: int = zipfile.ZIP_STORED) -> None:
    """Write a zip file of (source, name inside), the same bytes every time."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w", compression) as file:
        for source, name in members:
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type, info.external_attr = compression, 0o644 << 16
            file.writestr(info, source.read_bytes())
