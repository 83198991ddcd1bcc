"""What a data folder holds, read once: files, columns, kinds of columns, first lines."""

from __future__ import annotations

import csv
import math
import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TextIO

__all__ = ["FileFacts", "survey"]

_ROWS = 20_000
_FILES = 100_000
_HEAD_LINES = 6
_MISSING = frozenset({"", "#N/A", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"})
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
KINDS = ("num", "cat", "date", "file", "text")
"""Numeric; a few words or codes; ISO dates; file names; free text or names, mostly distinct."""
_FILE = re.compile(r"[\w./ -]+\.[A-Za-z0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file or folder at the top of a data folder."""

    name: str
    columns: tuple[str, ...] = ()
    """Of a CSV file; empty for anything else."""
    kinds: dict[str, str] = field(default_factory=dict)
    """Column -> one of ``num``, ``cat``, ``date``, ``file``, ``text``, judged by the rows read."""
    gaps: frozenset[str] = frozenset()
    """Columns with missing values among the rows read."""
    rows: int | None = None
    """Rows of a CSV file; None when it was not read to its end."""
    head: tuple[str, ...] = ()
    """First lines of a text file, each cut at 500 characters and then marked by ``...``."""
    files: int = 0
    """Files in a folder, at any depth, or in a zip file."""
    archive: bool = False
    """Whether it is a zip file."""
    suffixes: tuple[str, ...] = ()
    """Suffixes of the files in a folder, most frequent first."""


def survey(folder: Path) -> tuple[FileFacts, ...]:
    """Return the facts of every entry of ``folder`` that is not hidden, by name; cached until the folder changes."""
    return _survey(folder, folder.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _survey(folder: Path, _stamp: int) -> tuple[FileFacts, ...]:
    entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    return tuple(_look(path) for path in entries)


def _look(path: Path) -> FileFacts:
    if path.is_dir():
        found = (Path(name).suffix for _, _, names in os.walk(path) for name in names)
        counts = Counter(islice(found, _FILES))
        return FileFacts(path.name, files=counts.total(), suffixes=tuple(s for s, _ in counts.most_common(3) if s))
    if path.suffix == ".zip" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            counts = Counter(Path(name).suffix for name in archive.namelist() if not name.endswith("/"))
        suffixes = tuple(s for s, _ in counts.most_common(3) if s)
        return FileFacts(path.name, files=counts.total(), suffixes=suffixes, archive=True)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            head = tuple(_clip(line.rstrip("\r\n")) for line in islice(_lines(file), _HEAD_LINES))
            if path.suffix != ".csv":
                return FileFacts(path.name, head=head)
            file.seek(0)
            reader = csv.reader(file)
            columns = tuple(next(reader, []))
            rows = list(islice(reader, _ROWS))
            ended = next(reader, None) is None
    except (UnicodeDecodeError, csv.Error):
        return FileFacts(path.name)
    values = {name: [row[i] for row in rows if i < len(row)] for i, name in enumerate(columns)}
    return FileFacts(
        path.name,
        columns=columns,
        kinds={name: _kind(column) for name, column in values.items()},
        gaps=frozenset(name for name, column in values.items() if any(x in _MISSING for x in column)),
        rows=len(rows) if ended else None,
        head=head,
    )


def _lines(file: TextIO) -> Iterator[str]:
    # A file without line breaks may be huge; readline with a limit never takes all of it.
    return iter(lambda: file.readline(100_000), "")


def _clip(line: str) -> str:
    return line if len(line) <= 500 else line[:497] + "..."


def _kind(column: Sequence[str]) -> str:
    present = [x for x in column if x not in _MISSING]
    if not present:
        return "num"
    if all(map(_is_number, present)):
        return "num"
    if all(map(_DATE.match, present)):
        return "date"
    if all(map(_FILE.fullmatch, present)):
        return "file"
    distinct = len(set(present)) / len(present)
    mean_length = math.fsum(map(len, present)) / len(present)
    return "text" if mean_length > 30 or (distinct > 0.5 and len(present) > 20) else "cat"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
