"""The seccomp filter of a program: a hand-assembled classic BPF deny list, no libseccomp.

It takes away what namespaces do not cover: debugging other processes, moving to other cores, new namespaces,
memory that polling cannot see (memfd, System V) and kernel interfaces an ML program never needs.
"""

from __future__ import annotations

import errno
import struct

from .syscalls import MACHINE

__all__ = ["build_filter"]

# Names -> number on x86_64 and aarch64; -1 where the machine has no such call.
_DENIED: dict[str, tuple[int, int]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "sched_setaffinity": (203, 122),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "syslog": (103, 116),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "lookup_dcookie": (212, 18),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "memfd_secret": (447, 447),
    "iopl": (172, -1),
    "ioperm": (173, -1),
    "modify_ldt": (154, -1),
}
# Libraries fall back when the kernel lacks these: clone3 hides its flags behind a pointer, io_uring goes around
# the filter, the others hold memory that no process shows as its own.
_MISSING: dict[str, tuple[int, int]] = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
}
_MEMFD_CREATE = (319, 279)
_CLONE, _SOCKET, _IOCTL = (56, 220), (41, 198), (16, 29)

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_LD, _JEQ, _JGE, _JSET, _RET = 0x20, 0x15, 0x35, 0x45, 0x06
_NAMESPACES = 0x7E020000  # every CLONE_NEW* flag that clone takes
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK, _NETLINK_ROUTE = 1, 2, 10, 16, 0


def build_filter(*, allow_memfd: bool = False) -> bytes:
    """Return the filter for this machine.

    Args:
        allow_memfd: Leave ``memfd_create`` alone (the CUDA driver needs it).

    Raises:
        OSError: The machine is neither x86_64 nor aarch64.
    """
    if MACHINE not in _AUDIT_ARCH:
        raise OSError(errno.ENOSYS, f"no seccomp filter for {MACHINE}")
    column = 0 if MACHINE == "x86_64" else 1
    code: list[tuple[int, int, int, int]] = []

    def refuse(error: int) -> tuple[int, int, int, int]:
        return (_RET, 0, 0, _ERRNO | error)

    # struct seccomp_data: int nr at 0, u32 arch at 4, u64 args[6] from 16 (little endian).
    code += [(_LD, 0, 0, 4), (_JEQ, 1, 0, _AUDIT_ARCH[MACHINE]), (_RET, 0, 0, _KILL), (_LD, 0, 0, 0)]
    if MACHINE == "x86_64":
        code += [(_JGE, 0, 1, 0x40000000), refuse(errno.ENOSYS)]  # the x32 twin of every call
    missing = dict(_MISSING) if allow_memfd else {**_MISSING, "memfd_create": _MEMFD_CREATE}
    for table, error in ((_DENIED, errno.EPERM), (missing, errno.ENOSYS)):
        for numbers in table.values():
            if numbers[column] >= 0:
                code += [(_JEQ, 0, 1, numbers[column]), refuse(error)]
    code += [
        (_JEQ, 0, 4, _CLONE[column]),
        (_LD, 0, 0, 16),
        (_JSET, 0, 1, _NAMESPACES),
        refuse(errno.EPERM),
        (_RET, 0, 0, _ALLOW),
        (_JEQ, 0, 9, _SOCKET[column]),
        (_LD, 0, 0, 16),
        (_JEQ, 5, 0, _AF_UNIX),
        (_JEQ, 4, 0, _AF_INET),
        (_JEQ, 3, 0, _AF_INET6),
        (_JEQ, 0, 3, _AF_NETLINK),
        (_LD, 0, 0, 32),
        (_JEQ, 0, 1, _NETLINK_ROUTE),
        (_RET, 0, 0, _ALLOW),
        refuse(errno.EAFNOSUPPORT),
        (_JEQ, 0, 4, _IOCTL[column]),
        (_LD, 0, 0, 24),
        (_JEQ, 1, 0, _TIOCSTI),
        (_JEQ, 0, 1, _TIOCLINUX),
        refuse(errno.EPERM),
        (_RET, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
