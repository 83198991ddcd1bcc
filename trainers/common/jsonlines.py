"""Append-only JSON lines that survive a kill at any moment."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["JsonLines", "plain", "write_json"]


class JsonLines:
    """A file of one JSON object per line.

    Each ``append`` is one write. A line that a kill has torn is cut off when the file is opened next.

    Args:
        path: Created when missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()
        self._cut_torn_line()
        self._file = path.open("ab", buffering=0)

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Append records in one write; nan and infinity become null."""
        text = "".join(json.dumps(plain(record), ensure_ascii=False, allow_nan=False) + "\n" for record in records)
        rest = memoryview(text.encode("utf-8", errors="replace"))
        while rest:
            # An unbuffered write may be short: near a full disk, and always beyond 2 GiB.
            rest = rest[self._file.write(rest) :]

    def read(self) -> list[dict[str, Any]]:
        """Every record."""
        with self.path.open("rb") as file:
            return [json.loads(line) for line in file]

    def rewrite(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Replace the whole content, atomically."""
        new = self.path.with_name(self.path.name + ".new")
        new.unlink(missing_ok=True)
        other = JsonLines(new)
        other.append(records)
        other.sync()
        other.close()
        self._file.close()
        os.replace(new, self.path)
        self._file = self.path.open("ab", buffering=0)

    def sync(self) -> None:
        """Force everything to the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; idempotent."""
        self._file.close()

    def _cut_torn_line(self) -> None:
        content = self.path.read_bytes()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            os.truncate(self.path, end)


def plain(value: Any) -> Any:
    """The value in JSON's own types: arrays are lists, nan and infinity are None, anything else is its text."""
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return str(value)


def write_json(path: Path, value: Any) -> None:
    """Write one JSON document atomically."""
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(new, path)
