"""Further copies of what must stay hidden, in the other package folders that a program can see."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable

__all__ = ["every_copy", "package_folders", "with_byte_code", "within_packages"]

_NAMES = ("site-packages", "dist-packages")
_PLACES = ("", "python*/", "lib/python*/", "*/lib/python*/", "*/*/lib/python*/")
"""Where below a mount package folders lie: the system's, a prefix's, a virtual environment's, the Nix store's."""


def within_packages(path: str) -> str:
    """Return the path relative to its package folder (``<package>/<rest>``); ``""`` where it is in none."""
    parts = path.split("/")
    last = max((i for i, part in enumerate(parts) if part in _NAMES), default=len(parts))
    return "/".join(parts[last + 1 :])


def package_folders(mounts: Iterable[str]) -> list[str]:
    """Return the resolved package folders of this interpreter and of every mount."""
    found = [path for path in sys.path if os.path.isdir(path)]
    for mount in mounts:
        for place in _PLACES:
            for name in _NAMES:
                found += glob.glob(f"{glob.escape(mount)}/{place}{name}")
    return sorted({os.path.realpath(path) for path in found})


def every_copy(hidden: list[str], tails: list[str], folders: list[str]) -> list[str]:
    """Return ``hidden`` and whatever lies at the same place in another package folder.

    Args:
        hidden: Resolved paths.
        tails: What :func:`within_packages` said of them.
        folders: Package folders.
    """
    found = dict.fromkeys(hidden)
    for folder in folders:
        for tail in tails:
            path = os.path.join(folder, tail)
            if os.path.exists(path):
                found.update(dict.fromkeys(with_byte_code(os.path.realpath(path))))
    return list(found)


def with_byte_code(path: str) -> list[str]:
    """Return the path and, for a module, its byte code of every interpreter."""
    folder, name = os.path.split(path)
    stem, extension = os.path.splitext(name)
    cache = os.path.join(folder, "__pycache__")
    if extension != ".py" or not os.path.isdir(cache):
        return [path]
    return [path, *(os.path.join(cache, other) for other in os.listdir(cache) if other.startswith(f"{stem}."))]
