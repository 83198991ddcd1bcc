"""What every sub-command shares: errors for users, option parsing, JSON output."""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["UserError", "console", "parse", "plain", "resolve_id", "write_json"]

T = TypeVar("T")


class UserError(Exception):
    """The user asked for something that cannot be done; one sentence says what, where, and what to do instead.

    ``mle-gym`` prints it on stderr without a traceback and exits with ``code``.
    """

    code = 2


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
    body: list[str] = []
    # The first line is the box's title. A terminal without Unicode gets hyphens and blanks for a frame.
    for line in box.splitlines()[1:]:
        text = line.removeprefix("│").rstrip(" │")
        if text.strip("─╰╯- "):
            body.append(text)
        elif body:  # a rule below the message
            break
    if not body:
        return "The arguments are wrong"
    if "Missing from" in body[0]:
        # Each argument stands by itself, its help further in.
        names = [line.strip() for line in body[1:] if _indent(line) == _indent(body[0]) + 4]
        return f"Missing: {', '.join(names)}"
    return " ".join(line.strip() for line in body).rstrip(".:")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def resolve_id(name: str) -> str:
    """Return the environment id behind an id or a task's bare name.

    Raises:
        UserError: There is none; the sentence names the nearest one.
    """
    import gymnasium as gym

    import mle_gym  # noqa: F401  (registers the ids)

    ids = {env_id for env_id in gym.registry if env_id.startswith("mle_gym/")}
    if name in ids:
        return name
    versions = sorted(env_id for env_id in ids if name in (env_id, _stem(env_id), _stem(env_id).partition("/")[2]))
    if versions:
        return max(versions, key=lambda env_id: int(env_id.rpartition("-v")[2]))
    bare = {_stem(env_id).partition("/")[2]: env_id for env_id in sorted(ids)}
    wanted = _stem(name).rpartition("/")[2]
    close = difflib.get_close_matches(wanted, bare, n=1, cutoff=0.5)
    hint = f"did you mean {bare[close[0]]}?" if close else "`mle-gym tasks` lists what there is."
    raise UserError(f"There is no environment {name!r}; {hint}")


def _stem(env_id: str) -> str:
    """Return an id without its version."""
    stem, mark, version = env_id.rpartition("-v")
    return stem if mark and version.isdigit() else env_id


def console() -> Console:
    """Return a rich console on stdout; wide when the output is not a terminal, so that nothing is cut for a pipe."""
    from rich.console import Console

    class PipeConsole(Console):
        def on_broken_pipe(self) -> None:
            # rich would end the process with code 1; `main` knows better what to do.
            raise BrokenPipeError

    return PipeConsole(width=None if sys.stdout.isatty() else 200)


def write_json(value: object) -> None:
    """Print ``value`` as JSON on stdout; nan and infinity become null, arrays lists, paths strings."""
    json.dump(plain(value), sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def plain(value: Any) -> Any:
    """Return ``value`` in JSON's own types: nan and infinity become None, arrays lists, paths strings."""
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return value
