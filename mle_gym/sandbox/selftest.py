"""What a tier really enforces on this machine, measured with probe programs and positive controls."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .base import Execution, Limits, Program, SandboxUnavailable, Status
from .runner import Runner

__all__ = ["PROPERTIES", "measure"]

PROPERTIES = ("answers_hidden", "writes", "network", "signals", "memory", "processes", "disk", "output", "time")

_LIMITS = Limits(time=20.0, memory_mb=64, disk_mb=2, output_kb=64, processes=12, cores=0)
# Each attempt returns True when it got through. "ran" and "wrote" are the positive controls: a probe that could not
# even use its own folder would "pass" every other line.
_PROBE = """
import json, os, signal, socket, sys, time
goal = json.loads(os.environ["PROBE"])
def attempt(action):
    try:
        return bool(action())
    except (OSError, MemoryError):
        return False
def write(path):
    with open(path, "wb") as file:
        return file.write(b"x")
def fill():
    with open("fill", "wb", buffering=0) as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, 16 << 20)
        else:
            file.write(bytes(16 << 20))
    return True
def forks():
    pids, room = [], True
    try:
        while len(pids) < goal["processes"] * 2:
            pid = os.fork()
            if pid == 0:
                time.sleep(60)
                os._exit(0)
            pids.append(pid)
    except OSError:
        room = False
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return room
def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        return sock.sendto(b"x", ("192.0.2.1", 9))
said = {
    "wrote": attempt(lambda: write("mine") and open("mine", "rb").read() == b"x"),
    "read_input": attempt(lambda: open("input/shown").read() == "shown"),
    "read_answers": attempt(lambda: open(goal["answers"], "rb").read()),
    "list_answers": attempt(lambda: os.listdir(os.path.dirname(goal["answers"]))),
    "write_host": attempt(lambda: write(goal["answers"] + ".new")),
    "write_input": attempt(lambda: write("input/new")),
    "connect": attempt(lambda: socket.create_connection(("127.0.0.1", goal["port"]), 2)),
    "udp": attempt(udp),
    "signal": attempt(lambda: os.kill(goal["pid"], 0) is None),
    "allocate": attempt(lambda: len(bytearray(goal["memory_mb"] << 20))),
    "forks": forks(),
}
print(json.dumps(said), flush=True)
filled = attempt(fill)
print(json.dumps(filled), flush=True)
if filled:
    time.sleep(5)
"""
_FLOOD = "while True:\n    print('x' * 4096)\n"
_ENDLESS = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True:\n    pass\n"

_cache: dict[tuple[str, str, int], dict[str, str]] = {}
_lock = threading.Lock()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def measure(python: str, tier: str) -> dict[str, str]:
    """Return property -> ``kernel``, ``polled`` or ``none`` for one interpreter and tier; cached in this process.

    Raises:
        SandboxUnavailable: The probe could not be run at all, so nothing may be claimed.
    """
    key = (python, tier, os.geteuid())
    with _lock:
        if key not in _cache:
            runner = Runner(python, tier, warm=False)
            try:
                _cache[key] = _measure(runner)
            finally:
                runner.close()
        return dict(_cache[key])


def _measure(runner: Runner) -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="mle_gym-probe-") as folder, socket.create_server(("127.0.0.1", 0)) as door:
        root = Path(folder)
        shown, answers = root / "input", root / "answers.csv"
        shown.mkdir()
        (shown / "shown").write_text("shown", encoding="utf-8")
        answers.write_text("secret", encoding="utf-8")
        port = door.getsockname()[1]
        goal = {
            "answers": str(answers),
            "port": port,
            "pid": os.getpid(),
            "processes": _LIMITS.processes,
            "memory_mb": 2048,
        }
        probe = Program(_PROBE, env={"PROBE": json.dumps(goal)})

        def run(program: Program, limits: Limits) -> Execution:
            return runner.run(
                program,
                files={"input": shown},
                limits=limits,
                artifacts_dir=root,
                collect=(),
                max_artifact_mb=1,
                hidden=(),
                cancel=None,
            )

        with ThreadPoolExecutor(2) as threads:
            endless = threads.submit(run, Program(_ENDLESS), Limits(time=0.1, cores=0))
            flood = threads.submit(run, Program(_FLOOD), _LIMITS)
            told = run(probe, _LIMITS)
            cut = {"time": endless.result().status is Status.TIMEOUT}
            cut["disk"] = told.status is Status.DISK_LIMIT
            cut["output"] = flood.result().status is Status.OUTPUT_LIMIT
        said = _parse(told)
        reachable = _reachable(port)
    return _report(said, cut, runner.tier, reachable)


def _parse(told: Execution) -> dict[str, Any]:
    lines = told.stdout.splitlines()
    try:
        said = json.loads(lines[0])
        said["fill"] = json.loads(lines[1]) if len(lines) > 1 else True
    except (ValueError, IndexError):
        why = told.message or told.stderr or "it said nothing"
        raise SandboxUnavailable(f"the probe of the local sandbox did not run: {why}") from None
    if not (said["wrote"] and said["read_input"]):
        raise SandboxUnavailable("the probe of the local sandbox could not use its own folder")
    return dict(said)


def _reachable(port: int) -> bool:
    """The positive control of the network probe: from outside, the listener answers."""
    try:
        socket.create_connection(("127.0.0.1", port), 2).close()
    except OSError:
        return False
    return True


def _report(said: dict[str, Any], cut: dict[str, bool], tier: str, reachable: bool) -> dict[str, str]:
    def kernel(*attempts: str, otherwise: str = "none") -> str:
        return otherwise if any(said[name] for name in attempts) else "kernel"

    return {
        "answers_hidden": kernel("read_answers", "list_answers"),
        "writes": kernel("write_host", "write_input"),
        "network": kernel("connect", "udp") if reachable else "none",
        "signals": kernel("signal"),
        # The kernel bounds each process; their sum is looked at.
        "memory": "polled" if not said["allocate"] or tier == "limits" else "none",
        "processes": kernel("forks"),
        "disk": kernel("fill", otherwise="polled" if cut["disk"] else "none"),
        "output": "polled" if cut["output"] else "none",
        "time": "polled" if cut["time"] else "none",
    }
