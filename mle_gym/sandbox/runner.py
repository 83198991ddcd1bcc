"""One run of a program on this machine: checks the arguments, leases cores, talks to the helper, reads the result."""

from __future__ import annotations

import contextlib
import glob
import math
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import copies, launcher
from .base import Execution, ExecutionTiming, Limits, Program, Reached, SandboxUnavailable, Status
from .cores import CoreLease

__all__ = ["Runner"]

_PRIVATE_PACKAGES = ("mle_gym", "trainers", "benchmarks")
_MEMORY_DISK_MB = 1024
"""Up to here what a program writes lives in memory, where the kernel bounds it; beyond, in a folder that is polled."""
_ATTEMPTS, _RETRY_PAUSE = 4, 0.05
_CLOSE_LIMIT = 10.0
_private: dict[tuple[str, int, int, int], bool] = {}
"""Answers of the walk over a task's input, which does not change as long as its folder does not."""


class Runner:
    """Runs programs in one interpreter and one isolation tier.

    Args:
        python: Path of the interpreter.
        tier: ``namespaces`` or ``limits``.
        warm: Whether programs are forked from a process with the usual libraries imported.
    """

    def __init__(self, python: str, tier: str, warm: bool) -> None:
        self.tier = tier
        self.process = launcher.acquire(python, tier, warm)
        self.process.start()
        self._active: set[socket.socket] = set()
        self._closing = threading.Event()

    def close(self) -> None:
        """Cancel this runner's runs and let go of the shared process."""
        self._closing.set()
        until = time.monotonic() + _CLOSE_LIMIT
        while self._active and time.monotonic() < until:
            for sock in list(self._active):
                with contextlib.suppress(OSError):  # it has just ended
                    sock.send(b"c")
            time.sleep(0.01)
        launcher.release(self.process)

    def run(
        self,
        program: Program,
        *,
        files: Mapping[str, Path],
        limits: Limits,
        artifacts_dir: Path,
        collect: tuple[str, ...],
        max_artifact_mb: int,
        hidden: tuple[Path, ...],
        cancel: threading.Event | None,
    ) -> Execution:
        """Run one program; see :meth:`mle_gym.sandbox.base.Sandbox.run`. Leaves ``enforcement`` empty."""
        request = self._request(program, files, limits, artifacts_dir, collect, max_artifact_mb, hidden)
        submitted = time.monotonic()
        try:
            lease = CoreLease.acquire(limits.cores, cancel=cancel, closing=self._closing)
        except TimeoutError:
            queue = time.monotonic() - submitted
            return Execution(Status.CANCELLED, message="the run was cancelled", timing=ExecutionTiming(queue=queue))
        with lease:
            request["cores"] = list(lease.cores)
            return self._execute(request, submitted, time.monotonic(), cancel)

    def disk_in_memory(self, limits: Limits) -> bool:
        """Tell whether what the program writes stays in memory, where the kernel bounds it."""
        return self.tier == "namespaces" and limits.disk_mb <= _MEMORY_DISK_MB

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
        for name in files:
            if name == "program.py" or any(other.startswith(name + "/") for other in files):
                raise ValueError(f"files[{name!r}] would cover another file of the working folder.")
        sources: dict[str, tuple[str, bool]] = {}
        for name, path in files.items():
            real = os.path.realpath(path)
            if not os.path.exists(real):
                raise ValueError(f"files[{name!r}]={path} does not exist.")
            sources[name] = (real, _is_private(real))
        masked, tails = _expand_hidden(hidden)
        return {
            "program": {
                "source": program.source,
                "hooks": program.hooks,
                "context": dict(program.context),
                "seed": program.seed,
                "env": _check_env(program.env),
            },
            "limits": {
                name: getattr(limits, name)
                for name in ("time", "memory_mb", "disk_mb", "output_kb", "processes", "gpus")
            },
            "disk_in_memory": self.disk_in_memory(limits),
            "files": sources,
            "hidden": masked,
            "hidden_tails": tails,
            "protected": [os.path.realpath(os.path.expanduser(os.environ.get("MLE_GYM_DATA") or "~/.cache/mle_gym"))],
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
                ready = self.process.wait_ready()
                request["packages"] = _private_packages(ready["path"])
                if not request["disk_in_memory"]:
                    scratch = tempfile.mkdtemp(prefix="mle_gym-run-")
                request["scratch"] = scratch
                result = self.process.run(request, cancel, self._active)
                break
            except launcher.Lost as lost:
                # Before its start a program has had no effect, so it is safe to try again.
                if self._closing.is_set() or (cancel is not None and cancel.is_set() and not lost.started):
                    return Execution(Status.CANCELLED, message="the run was cancelled", timing=timing, shared=shared)
                if lost.started or attempt == _ATTEMPTS:
                    return Execution(Status.INFRASTRUCTURE_ERROR, message=str(lost), timing=timing, shared=shared)
                time.sleep(_RETRY_PAUSE * attempt)
            finally:
                if scratch:
                    shutil.rmtree(scratch, ignore_errors=True)
        if "unavailable" in result:
            raise SandboxUnavailable(result["unavailable"])
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
            shared=shared,
            warm=result["warm"],
        )


def _check_limits(limits: Limits) -> None:
    for name in ("time", "memory_mb", "disk_mb", "output_kb", "processes"):
        value = getattr(limits, name)
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"limits.{name}={value} must be positive and finite.")
    present = len(glob.glob("/dev/nvidia[0-9]*"))
    if not 0 <= limits.gpus <= present:
        raise ValueError(f"limits.gpus={limits.gpus} is out of range: this machine has {present} NVIDIA GPUs.")


def _check_env(env: Mapping[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"{name!r} and its value do not make an environment variable.")
    return dict(env)


def _is_private(real: str) -> bool:
    """Tell whether only its owner can read it, which matters where programs run as another user."""
    if os.geteuid() != 0:
        return False
    from . import users

    info = os.stat(real)
    key = (real, info.st_ino, info.st_mtime_ns, info.st_mode)
    if key not in _private:
        _private[key] = users.is_private(real, deep=True)
    return _private[key]


def _is_plain(name: str) -> bool:
    return bool(name) and "\0" not in name and all(part not in ("", ".", "..") for part in name.split("/"))


def _expand_hidden(hidden: tuple[Path, ...]) -> tuple[list[str], list[str]]:
    """Resolve the paths, and tell where in their package folders they lie."""
    reals: dict[str, None] = {}
    tails: dict[str, None] = {}
    for path in hidden:
        real = os.path.realpath(path)
        reals.update(dict.fromkeys(copies.with_byte_code(real)))
        # Some installers link packages to a store, so that only the path as given names the package folder.
        for spelling in (os.path.abspath(path), real):
            if tail := copies.within_packages(spelling):
                tails[tail] = None
    return list(reals), list(tails)


def _private_packages(path: list[str]) -> list[str]:
    """Folders of packages that hold graders and answers, where the interpreter would find them."""
    found = (os.path.realpath(os.path.join(entry, name)) for entry in path for name in _PRIVATE_PACKAGES)
    return sorted({folder for folder in found if os.path.isdir(folder)})
