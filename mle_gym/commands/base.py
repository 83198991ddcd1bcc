"""What every sub-command shares: errors for users, option parsing, JSON output."""

from __future__ import annotations

import contextlib
import io
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

__all__ = ["UserError", "parse", "write_json"]

T = TypeVar("T")
_BOX = "│╭╮╰╯─"


class UserError(Exception):
    """The user asked for something that cannot be done; one sentence says what, where, and what to do instead.

    ``mle-gym`` prints it on stderr without a traceback and exits with code 2.
    """


def parse(options: type[T], argv: Sequence[str], *, command: str) -> T:
    """Parse a sub-command's arguments into its options dataclass.

    Args:
        options: A dataclass whose docstring and field docstrings are the help text.
        argv: Arguments after the command's name.
        command: The command's name, for usage lines.

    Raises:
        UserError: An argument is missing, unknown or of the wrong type.
        SystemExit: With code 0, after ``--help``.
    """
    import tyro

    prog = f"mle-gym {command}"
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            return tyro.cli(options, args=list(argv), prog=prog, config=(tyro.conf.FlagCreatePairsOff,))
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise UserError(f"{_first_paragraph(errors.getvalue())}; see `{prog} --help`.") from None


def _first_paragraph(box: str) -> str:
    """Return the message of a tyro error box as one line."""
    lines = [line.strip(_BOX + " ") for line in box.splitlines()]
    # The first line is the box's title, an empty one after the strip is a rule.
    body = lines[1:] if len(lines) > 1 else lines
    message: list[str] = []
    for line in body:
        if not line and message:
            break
        if line:
            message.append(line)
    return " ".join(message).rstrip(".:") or "The arguments are wrong"


def write_json(value: object) -> None:
    """Print ``value`` as JSON on stdout; nan and infinity become null, arrays lists, paths strings."""
    json.dump(_plain(value), sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def _plain(value: Any) -> Any:
    """Return ``value`` in JSON's own types."""
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return value
