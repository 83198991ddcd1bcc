"""The first process of a run: builds the sandbox, starts the program, watches it, ends everything.

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
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from . import child, meters, namespaces, seccomp, syscalls

__all__ = ["Streams", "main"]

_COLD_START = (
    "import json,os,sys\n"
    "with os.fdopen(int(sys.argv[1]),'rb') as f: job=json.load(f)\n"
    "space={'__name__':'_mle_gym_sandbox.child'}\n"
    "exec(compile(job['child'],'<sandbox>','exec'),space)\n"
    "space['run'](job,int(sys.argv[2]))\n"
)
_POLL_FIRST, _POLL_LAST = 0.01, 0.05
_DATA_SLACK = 256 << 20
_CHILD_SOURCE = Path(child.__file__).read_text(encoding="utf-8")


@dataclass
class Streams:
    """Descriptors of the program's ends."""

    out: int
    err: int
    report: int


def main(
    request: dict[str, Any], root: namespaces.RootSpec | None, streams: Streams, control: socket.socket
) -> NoReturn:
    """Run one program and never return; the outcome goes to the supervisor over ``control``.

    Args:
        request: What the supervisor got, with ``job`` ready for :mod:`child`.
        root: The file system to build; None in the tier without isolation.
        streams: The program's ends of its pipes.
        control: Datagram socket to the supervisor: ``g`` starts, ``k`` or its end kills.
    """
    try:
        _reset_signals()
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


def _reset_signals() -> None:
    # A handler would let the program reach process 1; the default action cannot.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _enter(root: namespaces.RootSpec, control: socket.socket) -> None:
    workdir = namespaces.build_root(root)
    socket.send_fds(control, [b'{"workdir":1}'], [workdir])
    os.close(workdir)
    if not root.drop_user:
        os.setresgid(namespaces.INSIDE_ID, namespaces.INSIDE_ID, namespaces.INSIDE_ID)
        os.setresuid(namespaces.INSIDE_ID, namespaces.INSIDE_ID, namespaces.INSIDE_ID)
    syscalls.drop_capabilities()
    syscalls.set_no_new_privs()
    # Both are reset by a change of user, so they come last.
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)


def _watch(request: dict[str, Any], isolated: bool, streams: Streams, control: socket.socket) -> None:
    limits = request["limits"]
    wake, waker = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    program = os.fork()
    if program == 0:
        _become_program(request, isolated, streams)
    for fd in (streams.out, streams.err, streams.report):
        os.close(fd)
    poll = select.poll()
    poll.register(control.fileno(), select.POLLIN | select.POLLHUP)
    poll.register(wake, select.POLLIN)
    status, ended, reason, peak, pause = None, 0.0, "", 0.0, _POLL_FIRST
    while status is None and not reason:
        for fd, _ in poll.poll(pause * 1000):
            if fd == wake:
                os.read(wake, 4096)
            else:
                reason = "killed"
        status = _reap(program)
        if status is None and not reason:
            pause = min(pause * 1.5, _POLL_LAST)
            shm = _used_mb("/dev/shm") if isolated else 0.0
            alive = meters.members() if isolated else meters.descendants(os.getpid())
            used = meters.memory_mb(alive, limits["memory_mb"], shm)
            peak = max(peak, used)
            if used > limits["memory_mb"]:
                reason = "memory"
            elif _disk_full(request):
                reason = "disk"
    ended = time.monotonic()
    final = _kill_all(program, isolated, control)
    status = final if status is None else status
    if not reason and _disk_full(request):
        reason = "disk"
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 1024 if sys.platform.startswith("linux") else 2**20
    _tell(
        control,
        {
            "exit": None if status is None else os.waitstatus_to_exitcode(status),
            "reason": reason,
            "end": ended,
            "cpu": usage.ru_utime + usage.ru_stime,
            "peak": max(peak, usage.ru_maxrss / unit),
        },
    )


def _reap(program: int) -> int | None:
    """Collect every child that has ended; returns the program's wait status once it has."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == program:
            found = status


def _kill_all(program: int, isolated: bool, control: socket.socket) -> int | None:
    """Kill every process of the run and wait for each, so that its CPU time is counted."""
    found = None
    while True:
        if isolated:
            with contextlib.suppress(ProcessLookupError):  # nobody is left to kill
                os.kill(-1, signal.SIGKILL)  # all of the namespace but its first process; atomic against forks
        else:
            _kill_tree(program)
        while True:
            try:
                pid, status = os.waitpid(-1, 0 if isolated else os.WNOHANG)
            except ChildProcessError:
                return found
            if pid == 0:
                time.sleep(0.002)
                break
            if pid == program:
                found = status


def _kill_tree(program: int) -> None:
    """Without a namespace: stop everyone first, so that nobody forks away from the kill."""
    pids = meters.descendants(os.getpid()) or [program]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
    try:
        os.killpg(program, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _used_mb(path: str) -> float:
    info = os.statvfs(path)
    return (info.f_blocks - info.f_bfree) * info.f_frsize / 2**20


def _disk_full(request: dict[str, Any]) -> bool:
    """Tell whether the program has written all it may."""
    if request["disk_in_memory"]:
        info = os.statvfs(request["job"]["workdir"])
        return info.f_bfree == 0 or info.f_ffree == 0
    used = 0
    for root in request["writable"]:
        for folder, _, names in os.walk(root):
            for name in names:
                try:
                    used += os.lstat(os.path.join(folder, name)).st_blocks * 512
                except FileNotFoundError:
                    continue
    return used > int(request["limits"]["disk_mb"]) << 20


def _become_program(request: dict[str, Any], isolated: bool, streams: Streams) -> NoReturn:
    """In the forked child: take on the program's limits, then run it here or in a new interpreter."""
    try:
        job = request["job"]
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        report = _set_descriptors(streams)
        _set_limits(request, isolated)
        if request["warm"]:
            child.run(job, report)
        _exec_cold(request, job, report)
    except BaseException as error:
        print(f"the sandbox failed to start the program: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(71)


def _set_descriptors(streams: Streams) -> int:
    """Leave 0, 1, 2 and the report channel at a number nobody can guess; returns that number."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(streams.out, 1)
    os.dup2(streams.err, 2)
    report = 200 + int.from_bytes(os.urandom(2), "little") % 700
    os.dup2(streams.report, report, inheritable=False)
    os.closerange(3, report)
    os.closerange(report + 1, 4096)
    return report


def _set_limits(request: dict[str, Any], isolated: bool) -> None:
    limits = request["limits"]
    memory = limits["memory_mb"] << 20
    soft = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 1024,
    }
    if not request["disk_in_memory"]:
        soft[resource.RLIMIT_FSIZE] = max(limits["disk_mb"], limits["memory_mb"]) << 20
    if hasattr(resource, "RLIMIT_NPROC") and isolated:
        soft[resource.RLIMIT_NPROC] = limits["processes"] + 1  # our first process counts too
    if not limits["gpus"]:
        # Private writable memory of one process, with room for stacks and what the warm process brought along.
        soft[resource.RLIMIT_DATA] = memory + _DATA_SLACK + _data_bytes()
    for kind, value in soft.items():
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    if not sys.platform.startswith("linux"):
        return
    if request["cores"]:
        os.sched_setaffinity(0, request["cores"])
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
    with open("/proc/self/oom_score_adj", "w", encoding="utf-8") as file:
        file.write("1000")
    if isolated:
        syscalls.install_filter(seccomp.build_filter(allow_memfd=limits["gpus"] > 0))


def _data_bytes() -> int:
    try:
        with open("/proc/self/status", "rb") as file:
            line = next(line for line in file if line.startswith(b"VmData:"))
    except (OSError, StopIteration):
        return 0
    return int(line.split()[1]) * 1024


def _exec_cold(request: dict[str, Any], job: dict[str, Any], report: int) -> None:
    os.chdir(job["workdir"])
    with tempfile.TemporaryFile(dir=job["env"]["TMPDIR"]) as file:
        file.write(json.dumps({**job, "cold": True, "child": _CHILD_SOURCE}).encode())
        file.flush()
        file.seek(0)
        fd = os.dup(file.fileno())
    os.set_inheritable(fd, True)
    os.set_inheritable(report, True)
    argv = [sys.executable, "-s", "-c", _COLD_START, str(fd), str(report)]
    os.execve(argv[0], argv, job["env"])
