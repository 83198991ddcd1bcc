"""The ``mle-gym`` command: finds the sub-command, runs it, turns user errors into one sentence."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

__all__ = ["main"]

Command = Callable[[Sequence[str]], int | None]
GROUP = "mle_gym.commands"
_BUILT_IN = ("tasks", "show", "prepare", "run", "grade", "doctor")
_USAGE = """usage: mle-gym COMMAND [ARGUMENTS]

ML-engineering tasks as Gymnasium environments.

commands:
{commands}

`mle-gym COMMAND --help` explains one; `mle-gym --version` prints the version."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``mle-gym`` and return its exit code.

    0: the command worked. 2: the user asked for something that cannot be done; one sentence on stderr says what.
    70: a training run made no progress. 75: its machine keeps failing. 130: interrupted with Ctrl-C. 141: whoever read
    the output went away. Anything else that goes wrong is a defect of this program and keeps its traceback.

    Args:
        argv: Arguments without the program's name; those of the process by default.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without Unicode shows ? for an arrow; it is no reason to fail.
            stream.reconfigure(errors="replace")
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Python would complain again when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        print("mle-gym: interrupted.", file=sys.stderr)
        return 128 + signal.SIGINT


def _dispatch(arguments: list[str]) -> int:
    """Run the sub-command that ``arguments`` name."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE.format(commands=_list_commands()))
        return 0 if arguments else 2
    if arguments[0] == "--version":
        from mle_gym import __version__

        print(f"mle-gym {__version__}")
        return 0
    name, *rest = arguments
    command = _find(name)
    if command is None:
        known = [*_BUILT_IN, *(point.name for point in entry_points(group=GROUP))]
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean `{close[0]}`?" if close else "see `mle-gym --help`."
        print(f"mle-gym: there is no command `{name}`; {hint}", file=sys.stderr)
        return 2
    return _call(command, rest)


def _find(name: str) -> Command | None:
    """Return the callable behind a command's name, or None where nobody provides it."""
    if name in _BUILT_IN:
        command: Command = import_module(f"mle_gym.commands.{name}").main
        return command
    for point in entry_points(group=GROUP, name=name):
        loaded: Command = point.load()
        return loaded
    return None


def _call(command: Command, arguments: list[str]) -> int:
    """Run a command; a user's error becomes one sentence and an exit code, mostly 2."""
    from mle_gym.commands.base import UserError
    from mle_gym.sandbox.base import SandboxUnavailable
    from mle_gym.tasks.task import TaskUnavailable

    try:
        return command(arguments) or 0
    except (UserError, TaskUnavailable, SandboxUnavailable) as error:
        print(f"mle-gym: {error}", file=sys.stderr)
        return error.code if isinstance(error, UserError) else 2
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):  # a parser ended the process, for example after --help
            return stop.code or 0
        raise


def _list_commands() -> str:
    """Return one line for each command: its name and the first line of its docstring."""
    package = Path(__file__).parent / "commands"
    rows = [(name, _summary(package / f"{name}.py", "main")) for name in _BUILT_IN]
    rows += [(point.name, _entry_point_summary(point)) for point in sorted(entry_points(group=GROUP))]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {text}".rstrip() for name, text in rows)


def _entry_point_summary(point: EntryPoint) -> str:
    """Return what an entry point says about itself, read from its source: importing it may import torch."""
    top, *inner = point.module.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None:
        return f"(not installed: {point.module})"
    if not inner:
        return _summary(Path(spec.origin or ""), point.attr)
    for folder in spec.submodule_search_locations or ():
        stem = Path(folder, *inner)
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.is_file():
                return _summary(path, point.attr)
    return ""


def _summary(path: Path, function: str) -> str:
    """Return the first docstring line of a function in a source file; "" where it has none."""
    if not path.is_file():
        return ""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return (ast.get_docstring(node) or "").partition("\n")[0].rstrip(".")
    return ""
