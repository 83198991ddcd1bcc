"""The first process of a run: builds the sandbox, watches the program, ends everything.

Inside the pid namespace it is process 1, so the program can neither signal nor outlive it. In the tier without
isolation the same loop runs as the subreaper of the program's tree.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from typing import Any, NoReturn

from . import meters, namespaces, program, syscalls

__all__ = ["main"]

_POLL_FIRST, _POLL_LAST = 0.01, 0.05


def main(
    request: dict[str, Any], root: namespaces.RootSpec | None, streams: program.Streams, control: socket.socket
) -> NoReturn:
    """Hold one program and never return; the outcome goes to the supervisor over ``control``.

    Args:
        request: What the supervisor got, with ``job`` and ``remote`` (whether the warm process forks the program).
        root: The file system to build; None in the tier without isolation.
        streams: The program's ends of its pipes.
        control: Packet socket to the supervisor: ``g`` builds, then anything or its end kills.
    """
    try:
        # A handler would let the program reach process 1; the default action cannot.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        if root is not None:
            proc = os.open("/proc/self", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            socket.send_fds(control, [b"p"], [proc])
            os.close(proc)
        if control.recv(1) != b"g":
            os._exit(1)
        if root is not None:
            _enter(root, control)
        elif sys.platform.startswith("linux"):
            syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
            syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        _watch(request, root is not None, streams, control)
    except namespaces.Refused as error:
        _tell(control, {"refused": str(error)})
    except BaseException as error:
        _tell(control, {"error": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(0)


def _tell(control: socket.socket, message: dict[str, Any]) -> None:
    try:
        control.send(json.dumps(message).encode())
    except OSError:
        os._exit(1)  # the supervisor is gone, and with it whoever would have read this


def _enter(root: namespaces.RootSpec, control: socket.socket) -> None:
    workdir = namespaces.build_root(root)
    program.become_user()
    # Both are reset by a change of user, so they come last.
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    socket.send_fds(control, [b'{"workdir":1}'], [workdir])
    os.close(workdir)


def _watch(request: dict[str, Any], isolated: bool, streams: program.Streams, control: socket.socket) -> None:
    wake, waker = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    pid = -1
    if not request["remote"]:
        pid = os.fork()
        if pid == 0:
            program.become(request, isolated, streams)
    for fd in (streams.out, streams.err, streams.report):
        os.close(fd)
    poll = select.poll()
    poll.register(control.fileno(), select.POLLIN | select.POLLHUP)
    poll.register(wake, select.POLLIN)
    watch = _Meter(request, isolated)
    status, reason, pause = None, "", _POLL_FIRST
    while status is None and not reason:
        for fd, _ in poll.poll(pause * 1000):
            if fd == wake:
                os.read(wake, 4096)
            else:
                control.recv(16)
                reason = "killed"
        status = _reap(pid)
        if status is None and not reason:
            pause = min(pause * 1.5, _POLL_LAST)
            reason = watch.look()
    ended, killed = time.monotonic(), reason not in ("", "killed")
    final = _kill_all(pid, isolated)
    status = final if status is None else status
    if reason in ("", "killed") and watch.disk_full():
        reason = "disk"
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 1024 if sys.platform.startswith("linux") else 2**20
    _tell(
        control,
        {
            "exit": None if status is None else os.waitstatus_to_exitcode(status),
            "reason": reason,
            "killed": killed,
            "end": ended,
            "cpu": usage.ru_utime + usage.ru_stime,
            "peak": max(watch.peak, usage.ru_maxrss / unit),
        },
    )


class _Meter:
    """Memory and disk of the run, looked at now and then."""

    def __init__(self, request: dict[str, Any], isolated: bool) -> None:
        self.limits: dict[str, Any] = request["limits"]
        self.isolated = isolated
        self.in_memory: bool = request["disk_in_memory"]
        self.workdir: str = request["job"]["workdir"]
        self.peak = 0.0

    def look(self) -> str:
        """Return what is used up: ``memory``, ``disk`` or ````."""
        alive = meters.members() if self.isolated else meters.descendants(os.getpid())
        used = meters.memory_mb(alive, self.limits["memory_mb"], self._shm())
        self.peak = max(self.peak, used)
        if used > self.limits["memory_mb"]:
            return "memory"
        return "disk" if self.disk_full() else ""

    def disk_full(self) -> bool:
        """Tell whether the program has written all it may; the supervisor looks where that is not in memory."""
        if not self.in_memory:
            return False
        info = os.statvfs(self.workdir)
        return info.f_bfree == 0 or info.f_ffree == 0

    def _shm(self) -> float:
        if not self.isolated:
            return 0.0
        info = os.statvfs("/dev/shm")
        return (info.f_blocks - info.f_bfree) * info.f_frsize / 2**20


def _reap(program_pid: int) -> int | None:
    """Collect every child that has ended; returns the program's wait status once it has."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == program_pid:
            found = status


def _kill_all(program_pid: int, isolated: bool) -> int | None:
    """Kill every process of the run and wait for each, so that its CPU time is counted."""
    found = None
    while True:
        if isolated:
            with contextlib.suppress(ProcessLookupError):  # nobody is left to kill
                os.kill(-1, signal.SIGKILL)  # all of the namespace but its first process; atomic against forks
        else:
            _kill_tree(program_pid)
        status = _reap(program_pid)
        found = status if found is None else found
        if not (meters.members() if isolated else _children_left()):
            return found
        time.sleep(0.001)


def _children_left() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _kill_tree(program_pid: int) -> None:
    """Without a namespace: stop everyone first, so that nobody forks away from the kill."""
    pids = meters.descendants(os.getpid()) or [program_pid]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(program_pid, signal.SIGKILL)
