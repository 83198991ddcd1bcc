"""What the hooks must know of a program and its data."""

from __future__ import annotations

import ast
import csv
import os
import warnings
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from mle_gym.syntax import parse

if TYPE_CHECKING:
    from mle_gym.tasks.task import TaskData

__all__ = ["compiles", "parse_program", "program_context"]

_NO_PROGRAM = (SyntaxError, ValueError, RecursionError, MemoryError)
_FILE = "<mle_gym instrumented program>"

LARGEST_COUNTED = 64 * 2**20
"""Bytes; the rows of larger files are not counted, and the hooks do without."""
MOST_FILES = 100_000


def program_context(source: str, data: TaskData) -> dict[str, object]:
    """Return the JSON-able context that ``install`` gets.

    Args:
        source: The program.
        data: The task's data on the host.

    Returns:
        ``input_dir`` and ``submission`` (relative to the working folder), ``train_files`` and ``test_files`` (relative
        to ``input_dir``); where they can be had cheaply ``train_rows`` (the fewest rows of a train file), ``test_rows``
        (row counts that a prediction of the test rows may have) and ``last_import`` (line and module of the last
        statement of the leading import block).
    """
    task, public = data.task, data.public_dir
    train = [count for name in task.train_files if (count := _rows(public / name)) is not None]
    tables = (*(public / name for name in task.test_files), data.sample_path)
    test = {count for path in tables if (count := _rows(path)) is not None}
    return {
        "input_dir": "input",
        "train_files": list(task.train_files),
        "test_files": list(task.test_files),
        "submission": "submission.csv",
        "train_rows": min(train, default=None),
        "test_rows": sorted(test),
        "last_import": _last_import(source),
    }


def parse_program(source: str) -> ast.Module | None:
    """Return the program's syntax tree, None where the text is no program; shows no warning."""
    # A permanent filter, narrow and put in front: warnings.catch_warnings would swap the filters of all threads.
    warnings.filterwarnings("ignore", module=_FILE)
    try:
        return parse(source, _FILE)
    except _NO_PROGRAM:
        return None


def compiles(source: str) -> bool:
    """Whether the text is a program for the compiler too, which sees more than the parser; shows no warning."""
    warnings.filterwarnings("ignore", module=_FILE)
    try:
        compile(source, _FILE, "exec", dont_inherit=True)
    except _NO_PROGRAM:
        return False
    return True


def _last_import(source: str) -> tuple[int, str] | None:
    """Line and module of the last statement of the import block at the top of a program."""
    tree = parse_program(source)
    last = None
    for statement in tree.body if tree else ():
        if isinstance(statement, ast.Import):
            last = statement.lineno, statement.names[-1].name
        elif isinstance(statement, ast.ImportFrom):
            if statement.level == 0 and statement.module and statement.module != "__future__":
                last = statement.lineno, statement.module
        elif not _belongs_between_imports(statement):
            break
    return last


def _belongs_between_imports(statement: ast.stmt) -> bool:
    """Docstrings, calls like ``warnings.filterwarnings``, optional imports and constants."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return not any(isinstance(node, ast.Call) for node in ast.walk(statement))
    return isinstance(statement, (ast.Expr, ast.Try))


def _rows(path: Path) -> int | None:
    """Data rows of a CSV or TSV file, files of a folder, None where counting is not cheap."""
    try:
        status = path.stat()
    except OSError:
        return None
    return _count(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1024)
def _count(path: Path, stamp: int, size: int) -> int | None:
    if path.is_dir():
        return _count_files(path)
    if path.suffix not in (".csv", ".tsv") or size > LARGEST_COUNTED:
        return None
    content = path.read_bytes()
    if b'"' not in content:
        return max(0, sum(1 for line in content.splitlines() if line.strip()) - 1)
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            return max(0, sum(1 for record in csv.reader(file) if record) - 1)
    except csv.Error:
        return None  # A cell larger than the reader takes.


def _count_files(folder: Path) -> int | None:
    count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            count += entry.is_file()
            if count > MOST_FILES:
                return None
    return count or None
