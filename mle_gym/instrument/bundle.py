"""Joins the hook files to the one text that is shipped."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

__all__ = ["hooks_source"]

FILES = ("tracebacks", "core", "events", "evidence", "estimators", "frameworks", "install")


@lru_cache(maxsize=1)
def hooks_source() -> str:
    """Return the source of the hook module: standard library only, defines ``install(report, context)``.

    The files import each other by name when they are checked or tested; in one namespace these imports are left out.
    """
    folder = Path(__file__).with_name("hooks")
    parts = ["from __future__ import annotations\n"]
    for name in FILES:
        text = (folder / f"{name}.py").read_text(encoding="utf-8")
        lines = text.splitlines(keepends=True)
        for statement in ast.parse(text).body:
            inside = isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("mle_gym.")
            if inside or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
                for number in range(statement.lineno - 1, statement.end_lineno or statement.lineno):
                    lines[number] = ""
        parts.append("".join(lines))
    return "\n\n".join(parts)
