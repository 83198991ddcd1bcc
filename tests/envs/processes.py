"""Processes that the tests' own process started."""

from __future__ import annotations

import os
from pathlib import Path


def descendants() -> set[int]:
    """Processes that this one started, at any depth."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
    found: set[int] = set()
    edge = {os.getpid()}
    while edge := {pid for pid, parent in parents.items() if parent in edge} - found:
        found |= edge
    return found


def is_python(pid: int) -> bool:
    try:
        return "python" in os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return False
