"""Memory of a set of processes and the tree below one, read from ``/proc``."""

from __future__ import annotations

import os
from collections.abc import Iterable

__all__ = ["descendants", "folder_mb", "members", "memory_mb"]

_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20


def members() -> list[int]:
    """Every process of this pid namespace but its first, when ``/proc`` is the namespace's own."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]


def descendants(root: int) -> list[int]:
    """Every process below ``root``, itself left out; empty where there is no ``/proc``."""
    if not os.path.isdir("/proc/self"):
        return []
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue  # it ended while we looked
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def memory_mb(pids: Iterable[int], limit_mb: float, shm_mb: float = 0.0) -> float:
    """Memory of all ``pids`` together, MiB.

    Resident set sizes are summed first: cheap, and an upper bound. Only when they pass ``limit_mb`` are shared pages
    divided among their users (PSS), because forks share most of theirs.

    Args:
        pids: Processes; those that have ended count nothing.
        limit_mb: Where the cheap answer is no longer enough.
        shm_mb: Space used in ``/dev/shm``, which counts even where nobody maps it.
    """
    alive = list(pids)
    total = shm_mb
    for pid in alive:
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                total += int(file.read().split()[1]) * _PAGE_MB
        except (OSError, IndexError):
            continue
    if total <= limit_mb:
        return total
    private, shared = 0.0, 0.0
    for pid in alive:
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                fields = {line.split()[0]: int(line.split()[1]) / 1024 for line in file.readlines()[1:]}
        except PermissionError:
            # The program made itself unreadable; then its pages count in full.
            try:
                with open(f"/proc/{pid}/statm", "rb") as file:
                    private += int(file.read().split()[1]) * _PAGE_MB
            except OSError:
                continue
        except OSError:
            continue
        else:
            private += fields.get(b"Pss_Anon:", fields.get(b"Pss:", 0.0))
            shared += fields.get(b"Pss_Shmem:", 0.0)
    return private + max(shared, shm_mb)


def folder_mb(root: str) -> float:
    """Space taken by everything below ``root``, MiB."""
    used = 0
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                used += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return used / 2**20
