"""Linux system calls that the standard library lacks, through ctypes.

Loaded by the warm process with any interpreter from Python 3.9 on, so: standard library only, no recent syntax.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import socket
import struct
import sys
from typing import Any

__all__ = [
    "CLONE_NEWIPC",
    "CLONE_NEWNET",
    "CLONE_NEWNS",
    "CLONE_NEWPID",
    "CLONE_NEWUSER",
    "CLONE_NEWUTS",
    "MACHINE",
    "MNT_DETACH",
    "MS_BIND",
    "MS_NODEV",
    "MS_NOEXEC",
    "MS_NOSUID",
    "MS_PRIVATE",
    "MS_RDONLY",
    "MS_REC",
    "MS_REMOUNT",
    "bring_up_loopback",
    "clone",
    "drop_capabilities",
    "idmapped_tree",
    "install_filter",
    "keep_capabilities",
    "mount",
    "move_mount",
    "openat2",
    "pivot_root",
    "prctl",
    "restrict_mount",
    "set_no_new_privs",
    "sethostname",
    "setns",
    "umount2",
    "unshare",
]

MACHINE = platform.machine()

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_SECUREBITS = 1, 4, 22, 28
PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 24, 36, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
SECBIT_NO_SETUID_FIXUP = 1 << 2
# NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, each with its lock; KEEP_CAPS locked off.
_SECBITS_LOCKED = 0b11101111

_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_MOUNT_ATTR_IDMAP = 0x00100000

_NUMBERS: dict[str, dict[str, int]] = {
    "x86_64": {"clone": 56, "pivot_root": 155, "capset": 126},
    "aarch64": {"clone": 220, "pivot_root": 41, "capset": 91},
}
_COMMON = {"open_tree": 428, "move_mount": 429, "openat2": 437, "mount_setattr": 442}

_libc: Any = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None
# PyDLL keeps the interpreter lock: a raw clone must not race with another thread for it.
_libc_locked: Any = ctypes.PyDLL(None, use_errno=True) if sys.platform.startswith("linux") else None


def _number(name: str) -> int:
    if name in _COMMON:
        return _COMMON[name]
    try:
        return _NUMBERS[MACHINE][name]
    except KeyError:
        raise OSError(errno.ENOSYS, f"system call numbers are not known for {MACHINE}") from None


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _syscall(name: str, *args: Any, what: str = "") -> int:
    return _check(int(_libc.syscall(ctypes.c_long(_number(name)), *args)), what or name)


def _bytes(path: str | None) -> bytes | None:
    return None if path is None else os.fsencode(path)


def clone(flags: int) -> int:
    """Fork with namespace ``flags`` set; returns 0 in the child, which must end with ``os._exit``."""
    sigchld = 17
    zero = ctypes.c_long(0)
    number = ctypes.c_long(_number("clone"))
    return _check(int(_libc_locked.syscall(number, ctypes.c_long(flags | sigchld), zero, zero, zero, zero)), "clone")


def prctl(option: int, value: int = 0, third: int = 0) -> int:
    """``prctl(2)`` with integer arguments."""
    zero = ctypes.c_ulong(0)
    result = _libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(third), zero, zero)
    return _check(int(result), f"prctl {option}")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """``mount(2)``."""
    result = _libc.mount(_bytes(source), _bytes(target), _bytes(kind), ctypes.c_ulong(flags), _bytes(data))
    _check(int(result), f"mount {kind or source} on {target}")


def umount2(target: str, flags: int) -> None:
    """``umount2(2)``."""
    _check(int(_libc.umount2(_bytes(target), flags)), f"umount {target}")


def pivot_root(new_root: str, put_old: str) -> None:
    """``pivot_root(2)``."""
    _syscall("pivot_root", _bytes(new_root), _bytes(put_old))


def setns(fd: int, kind: int) -> None:
    """``setns(2)``: join the namespace behind ``fd`` (``kind`` 0 takes any)."""
    _check(int(_libc.setns(fd, kind)), "setns")


def unshare(flags: int) -> None:
    """``unshare(2)``."""
    _check(int(_libc.unshare(flags)), "unshare")


def sethostname(name: str) -> None:
    """``sethostname(2)``."""
    raw = name.encode()
    _check(int(_libc.sethostname(raw, len(raw))), "sethostname")


def restrict_mount(target: str, flags: int) -> None:
    """Add read-only, nosuid, nodev or noexec (``MS_*``) to a mount and to everything mounted below it."""
    # MOUNT_ATTR_RDONLY, NOSUID, NODEV and NOEXEC have the values of their MS_ twins.
    attributes = struct.pack("=QQQQ", flags & 15, 0, 0, 0)
    try:
        _syscall("mount_setattr", _AT_FDCWD, _bytes(target), _AT_RECURSIVE, attributes, ctypes.c_size_t(32))
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise OSError(error.errno, f"restrict {target}: {error.strerror}") from None
        _restrict_old(target, flags)


def _restrict_old(target: str, flags: int) -> None:
    """Before Linux 5.12: remount each mount below ``target``, keeping the flags that are locked."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        points = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    prefix = target.rstrip("/")
    for point in [p for p in points if p == prefix or p.startswith(prefix + "/")]:
        # ST_* flags of statvfs equal MS_*; the access-time flags lie above 1024 and are shifted the same way.
        kept = os.statvfs(point).f_flag & (15 | 1024 | 2048 | (1 << 21))
        mount(None, point, None, MS_REMOUNT | MS_BIND | kept | flags)


def idmapped_tree(source: str, userns_fd: int) -> int:
    """Clone the mount tree at ``source`` with owners mapped through a user namespace; needs real root.

    Returns:
        A file descriptor of the detached tree, for :func:`move_mount`.
    """
    open_tree_clone = 1
    flags = open_tree_clone | os.O_CLOEXEC | _AT_RECURSIVE
    fd = _syscall("open_tree", _AT_FDCWD, _bytes(source), flags, what=f"open_tree {source}")
    try:
        attributes = struct.pack("=QQQQ", _MOUNT_ATTR_IDMAP, 0, 0, userns_fd)
        _syscall("mount_setattr", fd, b"", _AT_EMPTY_PATH | _AT_RECURSIVE, attributes, ctypes.c_size_t(32))
    except OSError:
        os.close(fd)
        raise
    return fd


def move_mount(fd: int, target: str) -> None:
    """Attach a detached mount tree at ``target``."""
    empty_from_path = 4
    _syscall("move_mount", fd, b"", _AT_FDCWD, _bytes(target), empty_from_path, what=f"move_mount {target}")


def openat2(directory: int, path: str, flags: int, resolve: int) -> int:
    """``openat2(2)`` with ``RESOLVE_*`` flags; raises ``OSError`` with ``ENOSYS`` before Linux 5.6."""
    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, resolve)
    return _syscall("openat2", directory, _bytes(path), how, ctypes.c_size_t(len(how)), what=path)


def keep_capabilities() -> None:
    """Keep capabilities over the coming change of user."""
    prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP)


def drop_capabilities() -> None:
    """Give up every capability for good, also over ``execve``."""
    with open("/proc/sys/kernel/cap_last_cap", encoding="utf-8") as file:
        last = int(file.read())
    for capability in range(last + 1):
        prctl(PR_CAPBSET_DROP, capability)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    prctl(PR_SET_SECUREBITS, _SECBITS_LOCKED)
    version_3 = 0x20080522
    _syscall("capset", struct.pack("=Ii", version_3, 0), bytes(24))


def set_no_new_privs() -> None:
    """Make ``execve`` unable to grant privileges, which an unprivileged seccomp filter needs."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def install_filter(program: bytes) -> None:
    """Install a classic BPF seccomp filter (packed ``sock_filter`` records) in this process and its children."""
    buffer = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: unsigned short len, padding, pointer.
    fprog = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    seccomp_mode_filter = 2
    zero = ctypes.c_ulong(0)
    _check(int(_libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(seccomp_mode_filter), fprog, zero, zero)), "seccomp")


def bring_up_loopback() -> None:
    """Bring up ``lo``, which is down in a new network namespace."""
    siocsifflags, iff_up = 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, siocsifflags, struct.pack("16sH22x", b"lo", iff_up))
