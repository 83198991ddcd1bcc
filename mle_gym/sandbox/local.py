"""The local sandbox: namespaces, seccomp and resource limits, no daemon and no root needed."""

from __future__ import annotations

import dataclasses
import difflib
import os
import shutil
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from . import selftest
from .base import Execution, Limits, Program, Sandbox, SandboxUnavailable
from .runner import Runner

__all__ = ["LocalSandbox"]


class LocalSandbox(Sandbox):
    """Runs programs on this machine, each in fresh namespaces, forked from a warm process.

    Inside, a program finds, read-only, the interpreter with its packages, the system's programs, libraries and shared
    files (``/usr/share`` and ``/usr/local`` among them) and its input, and three empty writable folders; no network,
    no other process, nothing else of the host. Instances of one process share the warm process and the
    machine's cores, so they cost nothing.

    Args:
        python: Interpreter that programs run in; this one by default. It must be Python 3.9 or later.
        allow_unsafe: Where the kernel refuses namespaces, run with time, memory and output limits but **no
            isolation** (tier ``limits``) instead of raising; ``hidden`` is not enforced then.
        require: Properties (keys of :meth:`enforcement`) that must be enforced even with ``allow_unsafe``.
        warm: False starts a new interpreter for every program, which costs the import time of each.

    Raises:
        SandboxUnavailable: This machine cannot isolate programs, or not as ``require`` asks.
        ValueError: ``require`` names an unknown property.
    """

    name: ClassVar[str] = "local"

    def __init__(
        self,
        *,
        python: str | os.PathLike[str] | None = None,
        allow_unsafe: bool = False,
        require: tuple[str, ...] = (),
        warm: bool = True,
    ) -> None:
        self._runner: Runner | None = None
        if os.name != "posix":
            raise SandboxUnavailable("the local sandbox needs a POSIX system; use an installed plug-in here.")
        _check_names(require)
        path = _interpreter(python)
        # The warm process imports its libraries while the probe runs.
        runner = Runner(path, "namespaces", warm) if sys.platform.startswith("linux") else None
        try:
            if runner is None:
                raise SandboxUnavailable(f"namespaces need Linux, and this is {sys.platform}")
            report = selftest.measure(path, "namespaces")
        except SandboxUnavailable as error:
            if runner is not None:
                runner.close()
            if not allow_unsafe:
                raise SandboxUnavailable(
                    f"{error}; programs cannot be isolated here: allow user namespaces, use another sandbox, or pass "
                    "allow_unsafe=True to run them without isolation."
                ) from error
            report = selftest.measure(path, "limits")
            runner = Runner(path, "limits", warm)
        missing = [name for name, how in report.items() if how == "none" and (name in require or not allow_unsafe)]
        if missing:
            runner.close()
            raise SandboxUnavailable(
                f"the {runner.tier} tier does not enforce {', '.join(missing)} on this machine; use another sandbox"
                + ("." if allow_unsafe else " or pass allow_unsafe=True.")
            )
        self._runner = runner
        self._tier = runner.tier
        self._enforcement = MappingProxyType(report)

    @property
    def tier(self) -> str:
        """``namespaces`` (isolated) or ``limits`` (not)."""
        return self._tier

    def enforcement(self) -> Mapping[str, str]:
        """Property -> ``kernel``, ``polled`` or ``none``, measured once per process by probe programs."""
        return self._enforcement

    def run(
        self,
        program: Program,
        *,
        files: Mapping[str, Path],
        limits: Limits,
        artifacts_dir: Path,
        collect: tuple[str, ...] = ("submission.csv",),
        max_artifact_mb: int = 256,
        hidden: tuple[Path, ...] = (),
        cancel: threading.Event | None = None,
    ) -> Execution:
        """Run one program; see :meth:`Sandbox.run`.

        Raises:
            ValueError: A bad argument.
            RuntimeError: After :meth:`close`.
            SandboxUnavailable: A hidden path cannot be masked, or an input cannot be shown to the program.
        """
        runner = self._runner
        if runner is None:
            raise RuntimeError("this sandbox is closed; make a new one.")
        execution = runner.run(
            program,
            files=files,
            limits=limits,
            artifacts_dir=artifacts_dir,
            collect=collect,
            max_artifact_mb=max_artifact_mb,
            hidden=hidden,
            cancel=cancel,
        )
        enforcement = dict(self._enforcement)
        if not runner.disk_in_memory(limits):
            enforcement["disk"] = "polled"
        return dataclasses.replace(execution, enforcement=enforcement)

    def close(self) -> None:
        """Let go of the warm process; the last sandbox to do so ends it."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()

    def __del__(self) -> None:
        if getattr(self, "_runner", None) is not None:
            self.close()


def _interpreter(python: str | os.PathLike[str] | None) -> str:
    if python is None:
        return sys.executable
    found = shutil.which(os.fspath(python))
    if found is None:
        raise SandboxUnavailable(f"there is no interpreter {os.fspath(python)}; give the path of a Python executable.")
    return os.path.abspath(found)


def _check_names(require: tuple[str, ...]) -> None:
    for name in require:
        if name not in selftest.PROPERTIES:
            close = difflib.get_close_matches(name, selftest.PROPERTIES, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(selftest.PROPERTIES)}."
            raise ValueError(f"there is no property {name!r} to require; {hint}")
