"""A cache of folders on disk: built once, complete or absent, safe with many processes at once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from mle_gym.tasks.task import TaskUnavailable

try:
    import fcntl
except ImportError:  # Windows: without the lock work may be done twice, the rename stays atomic.
    fcntl = None  # type: ignore[assignment]

__all__ = ["MANIFEST", "cached_folder", "data_root", "data_version", "locked"]

MANIFEST = "manifest.json"
"""Name of the file that lists a finished folder's files with their digests."""


_verified: dict[Path, tuple[tuple[Path, int, int], ...]] = {}


def data_root(data_dir: Path | None = None) -> Path:
    """Return the folder that prepared data live under: the argument, ``$MLE_GYM_DATA`` or ``~/.cache/mle_gym``."""
    if data_dir is not None:
        return Path(data_dir).expanduser().absolute()
    if named := os.environ.get("MLE_GYM_DATA"):
        return Path(named).expanduser().absolute()
    return Path.home() / ".cache" / "mle_gym"


def cached_folder(folder: Path, build: Callable[[Path], object]) -> Path:
    """Return ``folder``, building it first if it is absent, half-written or changed since.

    Another process that builds the same folder is waited for. The folder appears by one rename, so nobody sees a part.

    Args:
        folder: Where it belongs.
        build: Fills an empty folder that it is given. Must give the same bytes every time.

    Raises:
        TaskUnavailable: The place cannot be written.
    """
    if _intact(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.parent / f".{folder.name}.lock"):
            if not _intact(folder):
                _build(folder, build)
    except OSError as error:
        raise TaskUnavailable(
            f"Data cannot be prepared in {folder} ({error.strerror or error}); set MLE_GYM_DATA to a writable folder."
        ) from error
    return folder


def data_version(folder: Path) -> str:
    """Return the digest of a finished folder's contents."""
    return str(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["data_version"])


def _build(folder: Path, build: Callable[[Path], object]) -> None:
    # We hold the lock, so whatever has this prefix was left by a process that died.
    for old in folder.parent.glob(f".{folder.name}.tmp-*"):
        shutil.rmtree(old, ignore_errors=True)
    work = folder.parent / f".{folder.name}.tmp-{os.getpid()}-{secrets.token_hex(4)}"
    work.mkdir(mode=0o755)
    try:
        build(work)
        _write_manifest(work)
        if folder.exists():
            folder.rename(work.with_name(work.name + "-old"))
        work.rename(folder)
    finally:
        for left in (work, work.with_name(work.name + "-old")):
            shutil.rmtree(left, ignore_errors=True)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.name != MANIFEST and not path.is_dir():
            yield path


def _digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in _files(folder)
    }


def _write_manifest(folder: Path) -> None:
    digests = _digests(folder)
    text = json.dumps({"data_version": _version(digests), "files": digests}, indent=1)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def _version(digests: dict[str, str]) -> str:
    """Digest of names and contents of all files: the data version."""
    return hashlib.sha256("".join(f"{k}\0{v}\n" for k, v in sorted(digests.items())).encode()).hexdigest()[:16]


def _intact(folder: Path) -> bool:
    try:
        # Digests are compared once for each state of the folder; sizes and times tell whether it changed.
        state = tuple((p, p.stat().st_mtime_ns, p.stat().st_size) for p in (folder / MANIFEST, *_files(folder)))
        if _verified.get(folder) == state:
            return True
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["files"] != _digests(folder) or manifest["data_version"] != _version(manifest["files"]):
            return False
    except (OSError, ValueError, KeyError, TypeError):
        return False
    _verified[folder] = state
    return True


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file; whoever else wants it waits, and it is free again when its holder dies."""
    with path.open("w") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
