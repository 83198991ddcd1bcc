"""Answers of a rewriting model on disk, by the hash of the program."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
from pathlib import Path
from typing import Self

from mle_gym.tasks.store import data_root

__all__ = ["RewriteCache"]

_VERSION = 1
"""Raised when the prompt changes: answers to another prompt are no answers to this one."""

_logger = logging.getLogger(__name__)


class RewriteCache:
    """One small file for each program; safe with many processes at once, because files appear by a rename.

    Args:
        folder: Where the files go; made at the first write.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writable = True

    @classmethod
    def open(cls, cache_dir: str | None, identity: str) -> Self | None:
        """Return the cache of one model.

        Args:
            cache_dir: A folder; None is ``rewrites`` in the data folder, "" is no cache.
            identity: Names the model and how it is asked; without one there is only a cache in a folder of its own.
        """
        if cache_dir == "" or (cache_dir is None and not identity):
            return None
        root = data_root() / "rewrites" if cache_dir is None else Path(cache_dir).expanduser().absolute()
        return cls(root / hashlib.sha256(f"{_VERSION} {identity}".encode()).hexdigest()[:16])

    def get(self, key: str) -> str | None:
        """Return the answer for a program's hash; None where there is none or its file is damaged."""
        try:
            document = json.loads(self._path(key).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            _logger.warning("The kept rewrite %s cannot be read and is made anew: %s", self._path(key), error)
            return None
        answer = document.get("answer") if isinstance(document, dict) else None
        return answer if isinstance(answer, str) else None

    def put(self, key: str, answer: str) -> None:
        """Keep an answer; where that is impossible it is said once, and the work goes on."""
        if not self._writable:
            return
        path = self._path(key)
        new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(json.dumps({"answer": answer}), encoding="utf-8")
            os.replace(new, path)
        except OSError as error:
            self._writable = False
            _logger.warning("Rewrites are not kept: %s cannot be written (%s).", self.folder, error.strerror or error)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"
