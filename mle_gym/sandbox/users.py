"""The user a program runs as, seen from the host."""

from __future__ import annotations

import os
from dataclasses import dataclass

from . import namespaces, syscalls

__all__ = ["User", "choose", "enter_own_namespace"]

_UNUSED = 0x70000000
"""Start of a range of ids that neither distributions, containers nor systemd hand out."""


@dataclass(frozen=True)
class User:
    """Host ids behind the sandbox's single user."""

    uid: int
    gid: int
    dropped: bool
    """True when they are not the caller's own."""

    def map(self, proc: int) -> None:
        """Write the user map of the process whose ``/proc`` folder is open as ``proc``."""
        inside = namespaces.INSIDE_ID
        if not self.dropped:
            _write("setgroups", "deny", proc)
        _write("uid_map", f"{inside} {self.uid} 1", proc)
        _write("gid_map", f"{inside} {self.gid} 1", proc)


def choose() -> User:
    """As root, an id that belongs to nobody, one per run; as an ordinary user, one's own."""
    if os.geteuid() != 0:
        return User(os.geteuid(), os.getegid(), dropped=False)
    uid, gid = _free("/proc/self/uid_map"), _free("/proc/self/gid_map")
    if uid is None or gid is None:
        return User(0, 0, dropped=False)  # root of a container that has no other ids: not the host's root
    return User(uid, gid, dropped=True)


def enter_own_namespace() -> str:
    """Make the coming children live in a pid namespace of their own, which dies with the first of them.

    An ordinary user first enters a user namespace that holds its own ids, to have a say over those of the runs.

    Returns:
        Why that is not possible, or "".
    """
    uid, gid = os.geteuid(), os.getegid()
    try:
        syscalls.unshare(syscalls.CLONE_NEWPID)
    except PermissionError:
        try:
            syscalls.unshare(syscalls.CLONE_NEWUSER)
            _write("/proc/self/setgroups", "deny")
            _write("/proc/self/uid_map", f"{uid} {uid} 1")
            _write("/proc/self/gid_map", f"{gid} {gid} 1")
            syscalls.unshare(syscalls.CLONE_NEWPID)
        except OSError as error:
            return f"the kernel gives this user no namespaces ({error.strerror})"
    except OSError as error:
        return f"the kernel gives no namespaces ({error.strerror})"
    return ""


def _free(map_file: str) -> int | None:
    """An id for this process from what the current user namespace maps."""
    wanted = _UNUSED + os.getpid()
    with open(map_file, encoding="utf-8") as lines:
        ranges = [(int(start), int(count)) for start, _, count in (line.split() for line in lines)]
    if any(start <= wanted < start + count for start, count in ranges):
        return wanted
    start, count = max(ranges, key=lambda item: item[1])
    return start + count - 1 - os.getpid() % min(count - 1, 32768) if count > 1 else None


def _write(path: str, text: str, folder: int | None = None) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
