"""Syntax trees, safely from many threads."""

from __future__ import annotations

import ast
import threading

__all__ = ["parse"]

_lock = threading.Lock()


def parse(source: str, filename: str = "<program>") -> ast.Module:
    """Parse as ``ast.parse`` does, one thread at a time.

    Up to Python 3.11.7 and 3.12.1 the interpreter keeps one recursion counter for the trees of all threads; when the
    garbage collector lets another thread in, sound programs raise ``SystemError: AST constructor recursion depth
    mismatch`` (python/cpython#106905).

    Raises:
        SyntaxError: The source is no program.
        ValueError: It holds null bytes.
        RecursionError: It is nested too deeply.
        MemoryError: It is nested too deeply for the parser.
    """
    with _lock:
        return ast.parse(source, filename)
