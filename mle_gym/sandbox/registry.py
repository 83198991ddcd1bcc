"""Sandboxes by name."""

from __future__ import annotations

import difflib
import os
from importlib.metadata import entry_points
from typing import Any

from .base import Sandbox

__all__ = ["make_sandbox"]

_GROUP = "mle_gym.sandboxes"


def make_sandbox(
    name: str = "local",
    *,
    python: str | os.PathLike[str] | None = None,
    allow_unsafe: bool = False,
    require: tuple[str, ...] = (),
) -> Sandbox:
    """Make a sandbox by name.

    Args:
        name: ``local``, or a name that an installed package registers in the entry-point group
            ``mle_gym.sandboxes`` (a callable that takes these keyword arguments).
        python: Interpreter that programs run in.
        allow_unsafe: Accept a backend that cannot isolate programs on this machine.
        require: Properties that must be enforced, for example ``("network", "answers_hidden")``.

    Raises:
        ValueError: There is no such sandbox.
        SandboxUnavailable: This machine cannot give what was asked for.
    """
    options: dict[str, Any] = {"python": python, "allow_unsafe": allow_unsafe, "require": tuple(require)}
    if name == "local":
        from .local import LocalSandbox

        return LocalSandbox(**options)
    found = {point.name: point for point in entry_points(group=_GROUP)}
    if name in found:
        sandbox: Sandbox = found[name].load()(**options)
        return sandbox
    known = sorted({"local", *found})
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}."
    raise ValueError(f"there is no sandbox {name!r}; {hint}")
