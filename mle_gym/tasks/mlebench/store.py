"""What is written down beside a prepared folder."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["differences", "record_differences"]

_RECORD = "differences.json"


def record_differences(prepared: Path, sentences: list[str]) -> None:
    """Write down, beside the prepared folder, which of its files are not MLE-bench's."""
    (prepared.parent / _RECORD).write_text(json.dumps(sentences, indent=1) + "\n", encoding="utf-8")


def differences(prepared: Path) -> list[str]:
    """Read what :func:`record_differences` wrote; nothing where MLE-bench itself prepared."""
    path = prepared.parent / _RECORD
    return [str(sentence) for sentence in json.loads(path.read_text(encoding="utf-8"))] if path.is_file() else []
