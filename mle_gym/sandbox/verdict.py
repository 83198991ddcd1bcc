"""From what was seen of a run to its status and one sentence."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any

__all__ = ["Evidence", "judge", "oom_kills"]


@dataclass
class Evidence:
    """What the supervisor saw."""

    limits: dict[str, Any]
    started: bool
    cut: str
    """Why the supervisor cut the program: ``timeout``, ``output``, ``disk``, ``cancelled``, ``orphaned`` or ``""``."""
    failure: str
    """What failed on our side."""
    limit_hit: str
    """``memory`` or ``disk`` where an uncaught exception of the program said so."""
    final: dict[str, Any]
    """What the first process told: ``exit``, ``reason``, perhaps ``error``; empty when it was killed."""
    oom: bool
    """The kernel killed something for want of memory meanwhile."""
    stderr: str


def judge(seen: Evidence) -> tuple[str, str]:
    """Return the status (a value of :class:`mle_gym.sandbox.base.Status`) and the message."""
    limits, final, code, reason = seen.limits, seen.final, seen.final.get("exit"), seen.final.get("reason")
    memory = ("out_of_memory", f"the program used more than its {limits['memory_mb']} MiB of memory")
    disk = ("disk_limit", f"the program wrote more than its {limits['disk_mb']} MiB")
    if seen.cut == "timeout":
        return "timeout", f"the program was still running after {limits['time']:g} s"
    if seen.cut == "output":
        return "output_limit", f"the program printed more than its {limits['output_kb']} KiB"
    if seen.cut == "disk":
        return disk
    if seen.cut:
        return "cancelled", "the run was cancelled"
    if seen.failure or "error" in final:
        return "infrastructure_error", seen.failure or f"the sandbox could not be built: {final['error']}"
    if reason == "memory":
        return memory
    if reason == "disk":
        return disk
    if code is None:
        return "infrastructure_error", "the first process of the sandbox was killed"
    if not seen.started:
        return "infrastructure_error", f"the program could not be started: {_last_line(seen.stderr)}"
    if code == 0:
        return "ok", ""
    if seen.limit_hit:
        return memory if seen.limit_hit == "memory" else disk
    if (code == -signal.SIGKILL and seen.oom) or (code == -signal.SIGABRT and "std::bad_alloc" in seen.stderr):
        return memory
    how = f"exit code {code}" if code > 0 else f"signal {-code}"
    return "program_error", f"the program ended with {how}: {_last_line(seen.stderr) or 'it printed no error'}"


def oom_kills() -> int:
    """How many processes the kernel has killed for want of memory since boot."""
    try:
        with open("/proc/vmstat", "rb") as lines:
            return next((int(line.split()[1]) for line in lines if line.startswith(b"oom_kill ")), 0)
    except FileNotFoundError:
        return 0


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
