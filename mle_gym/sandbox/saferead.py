"""Take a file out of a folder that a hostile program wrote, without being led anywhere else."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

__all__ = ["UnsafeFile", "copy_out", "open_regular"]

_RESOLVE = 0x01 | 0x02 | 0x04 | 0x08  # NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH
_CHUNK = 1 << 20


class UnsafeFile(Exception):
    """The file is not taken; the message completes "it ..."."""


def open_regular(directory: int, name: str, max_bytes: int) -> int:
    """Open ``name`` below ``directory`` for reading.

    Follows no symbolic link and crosses no mount; never blocks.

    Returns:
        A descriptor of a regular file with a single name and at most ``max_bytes`` bytes.

    Raises:
        UnsafeFile: It is something else, or cannot be read.
        FileNotFoundError: There is nothing of that name.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
    try:
        fd = _open_beneath(directory, name, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        reasons = {
            errno.ELOOP: "is a symbolic link or lies behind one",
            errno.EXDEV: "lies outside the working folder",
            errno.ENOTDIR: "lies below something that is not a folder",
            errno.ENXIO: "is a socket or a FIFO",
        }
        raise UnsafeFile(reasons.get(error.errno or 0, f"cannot be opened ({error.strerror})")) from error
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise UnsafeFile(f"is {_kind(info.st_mode)}, not a regular file")
        if info.st_nlink > 1:
            raise UnsafeFile("has more than one name (hard links)")
        if info.st_size > max_bytes:
            raise UnsafeFile(f"is larger than {max_bytes / 2**20:g} MiB")
    except UnsafeFile:
        os.close(fd)
        raise
    return fd


def copy_out(directory: int, name: str, destination: Path, max_bytes: int) -> None:
    """Copy ``name`` below ``directory`` to the new file ``destination``.

    Raises:
        UnsafeFile: See :func:`open_regular`; also when the file grows while it is read.
        FileNotFoundError: There is nothing of that name.
        OSError: ``destination`` cannot be written.
    """
    fd = open_regular(directory, name, max_bytes)
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        destination.unlink(missing_ok=True)
        left = max_bytes
        with open(destination, "xb") as out:
            while chunk := os.read(fd, _CHUNK):
                left -= len(chunk)
                if left < 0:
                    out.close()
                    destination.unlink()
                    raise UnsafeFile(f"is larger than {max_bytes / 2**20:g} MiB")
                out.write(chunk)
    finally:
        os.close(fd)


def _open_beneath(directory: int, name: str, flags: int) -> int:
    if sys.platform.startswith("linux"):
        from . import syscalls

        try:
            return syscalls.openat2(directory, name, flags, _RESOLVE)
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.EPERM):
                raise
    return _walk_beneath(directory, name, flags)


def _walk_beneath(directory: int, name: str, flags: int) -> int:
    """Open one component at a time with O_NOFOLLOW, for kernels without ``openat2``."""
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)
    device = os.fstat(directory).st_dev
    current = os.dup(directory)
    try:
        for part in parts[:-1]:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
            os.close(current)
            current = below
        fd = os.open(parts[-1], flags, dir_fd=current)
    finally:
        os.close(current)
    if os.fstat(fd).st_dev != device:
        os.close(fd)
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)
    return fd


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
    kinds.update({stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"})
    return kinds.get(stat.S_IFMT(mode), "something else")
