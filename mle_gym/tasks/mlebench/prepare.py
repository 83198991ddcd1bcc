"""Preparing a competition's real data: from Kaggle's files to the folders that MLE-bench makes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from mle_gym.tasks.mlebench.catalogue import Facts, catalogue
from mle_gym.tasks.mlebench.competition import competition_module
from mle_gym.tasks.mlebench.download import download, require_room
from mle_gym.tasks.mlebench.files import extract
from mle_gym.tasks.mlebench.store import record_differences
from mle_gym.tasks.store import data_root, locked
from mle_gym.tasks.task import TaskUnavailable

__all__ = ["ChecksumMismatch", "mismatches", "prepare"]


class ChecksumMismatch(UserWarning):
    """A prepared file is not the one that MLE-bench makes of Kaggle's data."""


def prepare(
    task_id: str,
    raw: Path | str | None = None,
    data_dir: Path | str | None = None,
    *,
    again: bool = False,
    progress: bool = False,
) -> Path:
    """Make the folders ``public`` and ``private`` of a competition, the same files as MLE-bench's.

    The finished folder appears by one rename: an interrupted call leaves nothing half-written, and a download goes on
    where it stopped. A folder that is there already is returned as it is.

    Args:
        task_id: The competition's slug or environment id.
        raw: A folder with Kaggle's files or a zip file of them; by default they are downloaded. It is not changed.
        data_dir: The folder goes to ``<data_dir>/<slug>/prepared``; by default below ``$MLE_GYM_DATA`` or
            ``~/.cache/mle_gym``.
        again: Prepare anew what is prepared already; the old folder stays until the new one is complete.
        progress: Show a bar while downloading.

    Returns:
        The folder that holds ``public`` and ``private``.

    Warns:
        ChecksumMismatch: A file differs from MLE-bench's; both hashes are named.

    Raises:
        KeyError: There is no such competition.
        TaskUnavailable: The files cannot be had, are not this competition's, or there is no room.
    """
    from mle_gym.tasks.mlebench.task import CompetitionTask
    from mle_gym.tasks.registry import get_task

    task = get_task(task_id)
    if not isinstance(task, CompetitionTask):
        raise TaskUnavailable(f"{task.name} is not one of MLE-bench's competitions; its data need no preparation.")
    home = data_root(Path(data_dir) if data_dir is not None else None) / task.name
    folder = home / "prepared"
    try:
        home.mkdir(parents=True, exist_ok=True)
        with locked(home / ".lock"):
            if again or not folder.exists():
                _build(task.name, task.facts, folder, Path(raw).expanduser() if raw is not None else None, progress)
    except OSError as error:
        raise TaskUnavailable(
            f"{task.name} cannot be prepared in {home} ({error.strerror or error}); choose another data_dir."
        ) from error
    return folder


def mismatches(name: str, folder: Path) -> list[str]:
    """Compare prepared files with MLE-bench's checksums; one sentence for each that differs."""
    sentences = []
    for part in ("public", "private"):
        for file, expected in catalogue()[name].md5.get(part, {}).items():
            path = folder / part / file
            found = _md5(path) if path.is_file() else "missing"
            if found != expected:
                sentences.append(f"{name}: {part}/{file} has MD5 {found}; MLE-bench's has {expected}.")
    return sentences


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def _build(name: str, facts: Facts, folder: Path, raw: Path | None, progress: bool) -> None:
    home = folder.parent
    # We hold the lock, so whatever has this prefix was left by a process that died.
    for old in home.glob(".prepared.tmp-*"):
        shutil.rmtree(old, ignore_errors=True)
    work = home / f".prepared.tmp-{secrets.token_hex(4)}"
    try:
        for part in ("public", "private", "raw"):
            (work / part).mkdir(parents=True)
        if raw is None:
            raw = _found_raw(name, home) or download(name, home, facts.size_gb, progress=progress)
        with _wrong_files(name, raw):
            module = competition_module(facts.module)
            _lay_out(name, raw, work / "raw", getattr(module, "COMPANIONS", ()))
            module.prepare(work / "raw", work / "public", work / "private")
        shutil.rmtree(work / "raw")
        _own_files(work)
        differing = mismatches(name, work)
        for sentence in differing:
            warnings.warn(sentence, ChecksumMismatch, stacklevel=4)
        if folder.exists():
            folder.rename(home / f".prepared.tmp-{secrets.token_hex(4)}")
        work.rename(folder)
        record_differences(folder, differing)
    finally:
        for left in home.glob(".prepared.tmp-*"):
            shutil.rmtree(left, ignore_errors=True)


def _found_raw(name: str, home: Path) -> Path | None:
    """Files that an earlier call, or MLE-bench, fetched."""
    if (home / "raw").is_dir():
        return home / "raw"
    archive = home / f"{name}.zip"
    return archive if archive.exists() and zipfile.is_zipfile(archive) else None


def _lay_out(name: str, raw: Path, work: Path, companions: Sequence[str]) -> None:
    """Give the preparer a raw folder of its own, in which it may unpack what it likes.

    Files that Kaggle does not have, the companions, are also taken from beside the raw folder or archive.
    """
    for companion in companions:
        if (raw.parent / companion).is_file():
            (work / companion).symlink_to((raw.parent / companion).resolve())
    if raw.is_dir():
        for folder, _, files in os.walk(raw):
            below = work / Path(folder).relative_to(raw)
            below.mkdir(exist_ok=True)
            for file in files:
                (below / file).unlink(missing_ok=True)
                (below / file).symlink_to((Path(folder) / file).resolve())
        return
    if not raw.exists():
        raise TaskUnavailable(f"{raw} does not exist; give a folder or a zip file with the files of {name}.")
    if not zipfile.is_zipfile(raw):
        raise TaskUnavailable(f"{raw} is neither a folder nor a zip file; give Kaggle's files of {name}.")
    require_room(name, work, raw.stat().st_size)
    extract(raw, work)


def _own_files(work: Path) -> None:
    """Replace links to the user's raw files by copies, should a preparer have moved some."""
    for path in work.rglob("*"):
        if path.is_symlink():
            target = path.resolve()
            path.unlink()
            shutil.copyfile(target, path)


@contextlib.contextmanager
def _wrong_files(name: str, raw: Path) -> Iterator[None]:
    """Say in one sentence that the raw files are not what the preparer knows."""
    try:
        yield
    except FileNotFoundError as error:
        missing = Path(error.filename).name if error.filename else str(error)
        raise TaskUnavailable(f"{raw} lacks {missing}; give all of Kaggle's files of {name}.") from error
    except (KeyError, ValueError, IndexError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split())[:200]
        raise TaskUnavailable(
            f"{raw} does not hold Kaggle's files of {name} as they were published ({type(error).__name__}: {reason})."
        ) from error
