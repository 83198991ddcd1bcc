"""The contract of a sandbox: one abstract class, its inputs and its result."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

__all__ = [
    "Execution",
    "ExecutionTiming",
    "Limits",
    "Program",
    "Reached",
    "Sandbox",
    "SandboxUnavailable",
    "Status",
]


class SandboxUnavailable(RuntimeError):
    """This machine cannot give what was asked for; the message says what is missing and what to do."""


class Status(StrEnum):
    """How an execution ended, seen from outside the program."""

    OK = "ok"
    PROGRAM_ERROR = "program_error"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    DISK_LIMIT = "disk_limit"
    OUTPUT_LIMIT = "output_limit"
    CANCELLED = "cancelled"
    INFRASTRUCTURE_ERROR = "infrastructure_error"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one execution may use."""

    time: float = 60.0
    """Wall seconds of the program itself; queue and set-up do not count."""
    memory_mb: int = 2048
    """MiB of memory over all processes of the program."""
    disk_mb: int = 512
    """MiB the program may write."""
    output_kb: int = 1024
    """KiB of stdout and stderr together; more ends the program."""
    processes: int = 64
    """Processes and threads alive at once."""
    cores: int = 1
    """Exclusive cores; 0 is unpinned and shared (sleepers and load tests), barred from timing claims."""
    gpus: int = 0
    """GPUs visible to the program."""


@dataclass(frozen=True, slots=True)
class Program:
    """A Python program and what is wrapped around it."""

    source: str
    hooks: str = ""
    """Source of a stdlib-only hook module, run in the program's interpreter before the program.

    It defines ``install(report, context)``: ``report(name, evidence)`` sends a milestone to the supervisor over a
    channel that is not the program's output; ``context`` is a dict with ``input_dir``, ``train_files``,
    ``test_files``, ``submission``.
    """
    context: Mapping[str, object] = field(default_factory=dict)
    """JSON-able; handed to ``install``."""
    seed: int = 0
    """Seeds ``random`` and ``numpy.random`` in the program's interpreter, and is its ``$MLE_SEED``."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Further environment variables of the program; a value that starts with ``./`` becomes absolute, against the
    working folder."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A milestone that a program reached."""

    name: str
    time: float
    """Seconds after the program's start."""
    evidence: str
    """``kernel`` (seen from outside) or ``interpreter`` (seen by a hook inside)."""


@dataclass(frozen=True, slots=True)
class ExecutionTiming:
    """Seconds per phase, monotonic clock, measured outside the program."""

    queue: float = 0.0
    setup: float = 0.0
    duration: float = 0.0
    teardown: float = 0.0


@dataclass(frozen=True, slots=True)
class Execution:
    """The result of one execution. ``run`` returns it for everything a program can do; it never raises for that."""

    status: Status
    exit_code: int | None = None
    """Exit code, negative for a signal; None when the program never ended by itself or never ran."""
    stdout: str = ""
    """Head and tail, decoded with ``errors="replace"``."""
    stderr: str = ""
    message: str = ""
    """One sentence where ``status`` is not ``ok``."""
    timing: ExecutionTiming = ExecutionTiming()
    cpu_time: float = 0.0
    """User plus system seconds of the whole process tree."""
    peak_memory: float = 0.0
    """MiB."""
    milestones: tuple[Reached, ...] = ()
    """In order of time; those reached before a cut count."""
    artifacts: Mapping[str, Path] = field(default_factory=dict)
    """Collected file -> its host copy."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """File that was asked for and not taken -> why (``it is a symbolic link``, ``it is larger than ...``)."""
    enforcement: Mapping[str, str] = field(default_factory=dict)
    """Property (``answers_hidden``, ``writes``, ``network``, ``signals``, ``memory``, ``processes``, ``disk``,
    ``output``, ``time``) -> ``kernel``, ``polled`` or ``none``."""
    shared: bool = False
    """True when the cores were not exclusive."""
    warm: bool = False
    """True when the program was forked from the warm process."""


class Sandbox(ABC):
    """Runs programs that nobody has reason to trust.

    ``run`` is blocking and may be called from many threads at once; it queues where cores are short.
    Exceptions: :class:`SandboxUnavailable` from the constructor when the machine cannot give what was asked for,
    ``ValueError`` for bad arguments, ``RuntimeError`` after ``close``. A program's behaviour, a killed supervisor
    and a failed backend are all results, not exceptions.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def tier(self) -> str:
        """Isolation tier in use, for example ``namespaces``."""

    @abstractmethod
    def enforcement(self) -> Mapping[str, str]:
        """Property -> ``kernel``, ``polled`` or ``none``, from a self-test with a positive control."""

    @abstractmethod
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
        """Run one program in a fresh working folder and return what happened.

        Args:
            program: Source, hooks, seed and environment.
            files: Name in the working folder -> host file or folder, mounted read-only, never copied.
            limits: What it may use.
            artifacts_dir: Existing host folder that receives the collected files.
            collect: Files of the working folder to bring back, read without following links.
            max_artifact_mb: Larger files are refused.
            hidden: Host paths that must not be readable inside (labels that come with installed packages).
            cancel: Ends the program with status ``cancelled`` when set.
        """

    @abstractmethod
    def close(self) -> None:
        """End every process this sandbox started; idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
