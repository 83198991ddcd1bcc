"""The user a program runs as, seen from the host."""

from __future__ import annotations

import os
import socket
import stat
from dataclasses import dataclass

from . import namespaces, syscalls, wire

__all__ = ["User", "choose", "enter_own_namespace", "is_private", "owner_map"]

_UNUSED = 0x70000000
"""Start of a range of ids that neither distributions, containers nor systemd hand out."""
_IDS = 0x0FFF0000


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


def owner_map(owner: tuple[int, int], user: User) -> int:
    """Return a user namespace in which files of ``owner`` (uid, gid) are those of ``user``, for a mapped mount."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, wire.PACKET)
    pid = syscalls.clone(syscalls.CLONE_NEWUSER)
    if pid == 0:
        try:
            ours.close()
            proc = os.open("/proc/self", os.O_RDONLY | os.O_DIRECTORY)
            socket.send_fds(theirs, [b"p"], [proc])
            theirs.recv(1)
        finally:
            os._exit(0)
    theirs.close()
    with ours:
        _, fds, _, _ = socket.recv_fds(ours, 1, 1)
        _write("uid_map", f"{owner[0]} {user.uid} 1", fds[0])
        _write("gid_map", f"{owner[1]} {user.gid} 1", fds[0])
        namespace = os.open("ns/user", os.O_RDONLY | os.O_CLOEXEC, dir_fd=fds[0])
        os.close(fds[0])
    os.waitpid(pid, 0)
    return namespace


def is_private(path: str, *, deep: bool) -> bool:
    """Tell whether something at ``path`` (and, if ``deep``, below it) is closed to other users."""
    try:
        info = os.stat(path)
    except OSError:
        return False  # it is gone, or a link to nowhere
    if not stat.S_ISDIR(info.st_mode):
        return not info.st_mode & stat.S_IROTH
    if info.st_mode & 0o005 != 0o005:
        return True
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_symlink():
                continue
            folder = entry.is_dir()
            if folder and deep:
                if is_private(entry.path, deep=True):
                    return True
            else:
                mode = entry.stat().st_mode
                if not mode & stat.S_IROTH or (folder and not mode & stat.S_IXOTH):
                    return True
    return False


def _free(map_file: str) -> int | None:
    """An id for this process from what the current user namespace maps."""
    # Process ids repeat between the sandboxes of a machine, and whoever shares a user shares its limit of processes.
    chance = int.from_bytes(os.urandom(4), "little")
    wanted = _UNUSED + chance % _IDS
    with open(map_file, encoding="utf-8") as lines:
        ranges = [(int(start), int(count)) for start, _, count in (line.split() for line in lines)]
    if any(start <= wanted < start + count for start, count in ranges):
        return wanted
    start, count = max(ranges, key=lambda item: item[1])
    return start + count - 1 - chance % min(count - 1, 32768) if count > 1 else None


def _write(path: str, text: str, folder: int | None = None) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
