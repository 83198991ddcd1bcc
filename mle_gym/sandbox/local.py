"""The local sandbox: namespaces, seccomp and resource limits, no daemon and no root needed."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from . import launcher
from .base import Execution, ExecutionTiming, Limits, Program, Reached, Sandbox, SandboxUnavailable, Status
from .cores import CoreLease

__all__ = ["LocalSandbox"]

_PRIVATE_PACKAGES = ("mle_gym", "trainers", "benchmarks")
_MEMORY_DISK_MB = 1024
_ATTEMPTS = 3


class LocalSandbox(Sandbox):
    """Runs programs on this machine, each in fresh namespaces, forked from a warm process.

    Inside, a program finds the interpreter, the system's libraries, its input and three empty writable folders; no
    network, no other process, nothing else of the host. Instances of one process share the warm process and the
    machine's cores, so they cost nothing.

    Args:
        python: Interpreter that programs run in; this one by default. It must be Python 3.9 or later.
        allow_unsafe: Where the kernel refuses namespaces, run with time, memory and output limits but **no
            isolation** (tier ``limits``) instead of raising; ``hidden`` is not enforced then.
        require: Properties (keys of :meth:`enforcement`) that must be enforced.
        warm: False starts a new interpreter for every program, which costs the import time of each.

    Raises:
        SandboxUnavailable: This machine cannot isolate programs, or not as ``require`` asks.
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
        self._closed = False
        self._python = _interpreter(python)
        self._warm = warm
        self._tier = "namespaces" if sys.platform.startswith("linux") else "limits"
        self._enforcement: Mapping[str, str] = {}
        self._process = launcher.acquire(self._python, self._tier, warm)
        self._process.start()

    @property
    def tier(self) -> str:
        """``namespaces`` (isolated) or ``limits`` (not)."""
        return self._tier

    def enforcement(self) -> Mapping[str, str]:
        """Property -> ``kernel``, ``polled`` or ``none``, measured once per process by a probe program."""
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
            SandboxUnavailable: A hidden path cannot be masked.
        """
        if self._closed:
            raise RuntimeError("this sandbox is closed; make a new one.")
        request = self._request(program, files, limits, artifacts_dir, collect, max_artifact_mb, hidden)
        submitted = time.monotonic()
        try:
            lease = CoreLease.acquire(limits.cores, cancel=cancel)
        except TimeoutError:
            queue = time.monotonic() - submitted
            return Execution(Status.CANCELLED, message="the run was cancelled", timing=ExecutionTiming(queue=queue))
        with lease:
            request["cores"] = list(lease.cores)
            return self._execute(request, submitted, time.monotonic(), cancel)

    def close(self) -> None:
        """Let go of the warm process; the last sandbox to do so ends it."""
        if not self._closed:
            self._closed = True
            launcher.release(self._process)

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self.close()

    def _request(
        self,
        program: Program,
        files: Mapping[str, Path],
        limits: Limits,
        artifacts_dir: Path,
        collect: tuple[str, ...],
        max_artifact_mb: int,
        hidden: tuple[Path, ...],
    ) -> dict[str, Any]:
        _check_limits(limits)
        if not Path(artifacts_dir).is_dir():
            raise ValueError(f"artifacts_dir={artifacts_dir} is not a folder.")
        for name in (*files, *collect):
            if not _is_plain(name):
                raise ValueError(f"{name!r} is not a path inside the working folder.")
        sources: dict[str, str] = {}
        for name, path in files.items():
            sources[name] = os.path.realpath(path)
            if not os.path.exists(sources[name]):
                raise ValueError(f"files[{name!r}]={path} does not exist.")
        return {
            "program": {
                "source": program.source,
                "hooks": program.hooks,
                "context": dict(program.context),
                "seed": program.seed,
                "env": dict(program.env),
            },
            "limits": {
                name: getattr(limits, name)
                for name in ("time", "memory_mb", "disk_mb", "output_kb", "processes", "gpus")
            },
            "files": sources,
            "hidden": _expand_hidden(hidden),
            "artifacts_dir": os.path.abspath(artifacts_dir),
            "collect": list(collect),
            "max_artifact_mb": max_artifact_mb,
        }

    def _execute(
        self, request: dict[str, Any], submitted: float, leased: float, cancel: threading.Event | None
    ) -> Execution:
        timing = ExecutionTiming(queue=leased - submitted)
        shared = not request["cores"]
        for attempt in range(1, _ATTEMPTS + 1):
            scratch = ""
            try:
                ready = self._process.wait_ready()
                request["packages"] = _private_packages(ready["path"])
                if self._tier == "limits" or request["limits"]["disk_mb"] > _MEMORY_DISK_MB:
                    scratch = tempfile.mkdtemp(prefix="mle_gym-run-")
                request["scratch"] = scratch
                result = self._process.run(request, cancel)
                break
            except launcher.Lost as lost:
                # Before its start a program has had no effect, so it is safe to try again.
                if lost.started or attempt == _ATTEMPTS or (cancel is not None and cancel.is_set()):
                    return Execution(Status.INFRASTRUCTURE_ERROR, message=str(lost), timing=timing, shared=shared)
            finally:
                if scratch:
                    shutil.rmtree(scratch, ignore_errors=True)
        if "unavailable" in result:
            raise SandboxUnavailable(result["unavailable"] + ".")
        start, end = result["start"] or result["end"], result["end"]
        timing = ExecutionTiming(
            queue=leased - submitted,
            setup=max(0.0, start - leased),
            duration=max(0.0, end - start),
            teardown=max(0.0, time.monotonic() - end),
        )
        artifacts = {name: Path(request["artifacts_dir"]) / name for name in result["artifacts"]}
        return Execution(
            status=Status(result["status"]),
            exit_code=result["exit_code"],
            stdout=result["stdout"],
            stderr=result["stderr"],
            message=result["message"],
            timing=timing,
            cpu_time=result["cpu"],
            peak_memory=result["peak"],
            milestones=tuple(Reached(*item) for item in result["milestones"]),
            artifacts=artifacts,
            refused=result["refused"],
            enforcement=self._enforcement,
            shared=shared,
            warm=result["warm"],
        )


def _interpreter(python: str | os.PathLike[str] | None) -> str:
    if python is None:
        return sys.executable
    found = shutil.which(os.fspath(python))
    if found is None:
        raise SandboxUnavailable(f"there is no interpreter {os.fspath(python)}; give the path of a Python executable.")
    return os.path.abspath(found)


def _check_limits(limits: Limits) -> None:
    for name in ("time", "memory_mb", "disk_mb", "output_kb", "processes"):
        if getattr(limits, name) <= 0:
            raise ValueError(f"limits.{name}={getattr(limits, name)} must be positive.")
    if limits.gpus < 0:
        raise ValueError(f"limits.gpus={limits.gpus} must not be negative.")


def _is_plain(name: str) -> bool:
    return bool(name) and "\0" not in name and all(part not in ("", ".", "..") for part in name.split("/"))


def _expand_hidden(hidden: tuple[Path, ...]) -> list[str]:
    """Resolve the paths; a hidden module's byte code is hidden with it."""
    found: dict[str, None] = {}
    for path in hidden:
        real = os.path.realpath(path)
        found[real] = None
        folder, name = os.path.split(real)
        stem, extension = os.path.splitext(name)
        cache = Path(folder, "__pycache__")
        if extension == ".py" and cache.is_dir():
            found.update(dict.fromkeys(str(p) for p in cache.iterdir() if p.name.startswith(f"{stem}.")))
    return list(found)


def _private_packages(path: list[str]) -> list[str]:
    """Folders of packages that hold graders and answers, where the interpreter would find them."""
    found = (os.path.realpath(os.path.join(entry, name)) for entry in path for name in _PRIVATE_PACKAGES)
    return sorted({folder for folder in found if os.path.isdir(folder)})
