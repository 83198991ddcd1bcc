"""Turning a freshly forked process into the program: descriptors, limits, filter, interpreter."""

from __future__ import annotations

import json
import os
import resource
import signal
import site
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from . import child, namespaces, seccomp, syscalls

__all__ = ["Streams", "become", "become_user"]

_COLD_START = (
    "import json,os,sys\n"
    "with os.fdopen(int(sys.argv[1]),'rb') as f: job=json.load(f)\n"
    "space={'__name__':'_mle_gym_sandbox.child'}\n"
    "exec(compile(job['child'],'<sandbox>','exec'),space)\n"
    "space['run'](job,int(sys.argv[2]))\n"
)
_DATA_SLACK = 256 << 20
_CHILD_SOURCE = Path(child.__file__).read_text(encoding="utf-8")


@dataclass
class Streams:
    """Descriptors of the program's ends."""

    out: int
    err: int
    report: int


def become_user() -> None:
    """Take the sandbox's user and give up every privilege, for good."""
    if os.getuid() != namespaces.INSIDE_ID:
        os.setgroups([])
        syscalls.keep_capabilities()
        os.setresgid(namespaces.INSIDE_ID, namespaces.INSIDE_ID, namespaces.INSIDE_ID)
        os.setresuid(namespaces.INSIDE_ID, namespaces.INSIDE_ID, namespaces.INSIDE_ID)
    syscalls.drop_capabilities()
    syscalls.set_no_new_privs()


def become(request: dict[str, Any], isolated: bool, streams: Streams) -> NoReturn:
    """Take on the program's limits, then run it here or in a new interpreter; never returns."""
    try:
        job = request["job"]
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.umask(0o022)
        os.setsid()
        report = _set_descriptors(streams)
        _set_limits(request, isolated)
        if request["warm"]:
            child.run(job, report)
        _exec_cold(job, report)
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
    report = child.report_number(streams.report)
    os.dup2(streams.report, report, inheritable=False)
    os.closerange(3, report)
    os.closerange(report + 1, 4096)
    return report


def _set_limits(request: dict[str, Any], isolated: bool) -> None:
    limits = request["limits"]
    bounds = {resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: 1024}
    if not request["disk_in_memory"]:
        bounds[resource.RLIMIT_FSIZE] = max(limits["disk_mb"], limits["memory_mb"]) << 20
    if isolated:
        bounds[resource.RLIMIT_NPROC] = limits["processes"] + 1  # the sandbox's first process counts too
    if not limits["gpus"]:
        # Private writable memory of one process, with room for stacks and what the warm process brought along.
        bounds[resource.RLIMIT_DATA] = (limits["memory_mb"] << 20) + _DATA_SLACK + _data_bytes()
    for kind, value in bounds.items():
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


def _exec_cold(job: dict[str, Any], report: int) -> None:
    os.chdir(job["workdir"])
    with tempfile.TemporaryFile(dir=job["env"]["TMPDIR"]) as file:
        file.write(json.dumps({**job, "cold": True, "child": _CHILD_SOURCE}).encode())
        file.flush()
        file.seek(0)
        fd = os.dup(file.fileno())
    os.set_inheritable(fd, True)
    os.set_inheritable(report, True)
    argv = [sys.executable, *([] if site.ENABLE_USER_SITE else ["-s"]), "-c", _COLD_START, str(fd), str(report)]
    os.execve(argv[0], argv, job["env"])
