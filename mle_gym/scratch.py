"""Temporary folders that do not outlive their process, however it ends."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
import threading
import time
from multiprocessing.util import Finalize
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nothing tells a dead process's folder from a living one's, so none is removed.
    fcntl = None  # type: ignore[assignment]

__all__ = ["scratch_folder"]

PREFIX = "mle_gym-"
LOCK = ".lock"
_UNFINISHED = "new-"
_UNFINISHED_SECONDS = 3600.0
"""Age from which a folder that was never finished counts as left behind."""

_guard = threading.Lock()
_root: Path | None = None
_lock_fd = -1


def scratch_folder(name: str) -> Path:
    """Return a new empty folder, only for this user, that is removed when the process ends.

    All folders of a process lie in one, whose lock file it holds. A killed process removes nothing, but its lock ends
    with it: the next process that asks for a folder removes those of this user whose lock is free. A lock belongs to
    the file, so processes of other containers that share the folder for temporary files are safe too.

    Args:
        name: Beginning of the folder's name.
    """
    global _root
    with _guard:
        if _root is None or not _root.is_dir():
            _sweep(Path(tempfile.gettempdir()))
            _root = _make_root()
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=_root))


def _make_root() -> Path:
    """Make this process's folder; it gets its name when its lock is held, so that nobody takes it for a dead one."""
    global _lock_fd
    new = Path(tempfile.mkdtemp(prefix=PREFIX + _UNFINISHED))
    if _lock_fd >= 0:
        os.close(_lock_fd)
    _lock_fd = os.open(new / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    if fcntl is not None:
        fcntl.flock(_lock_fd, fcntl.LOCK_EX)
    root = new.with_name(f"{PREFIX}{secrets.token_hex(6)}")
    new.rename(root)
    # Runs at the end of the main process and of a multiprocessing worker alike; atexit skips the latter. In a child
    # that was forked without ceremony it does nothing: the folder is its parent's.
    Finalize(None, shutil.rmtree, args=(root,), kwargs={"ignore_errors": True}, exitpriority=0)
    return root


def _sweep(place: Path) -> None:
    """Remove what dead processes of this user have left."""
    if fcntl is None:
        return
    for folder in place.glob(f"{PREFIX}*"):
        # Another process may be at the same work, and strangers may write here too: whatever looks odd stays.
        with contextlib.suppress(OSError):
            info = folder.lstat()
            if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
                continue
            if folder.name.startswith(PREFIX + _UNFINISHED):
                if time.time() - info.st_mtime > _UNFINISHED_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)
                continue
            fd = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(fd)


def _forget() -> None:
    # The folder is the parent's; the inherited lock keeps it as long as this child lives.
    global _root, _lock_fd, _guard
    _root, _lock_fd, _guard = None, -1, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
