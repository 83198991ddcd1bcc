"""The helper: a small clean process that forks one supervisor per run.

Started as its own program with an allow-listed environment, never forked from the trainer, so nothing below it holds
a secret. It stays small because a supervisor is a fork of it; the libraries live in its child, the warm process.
"""

from __future__ import annotations

import gc
import glob
import os
import select
import signal
import socket
import sys
import time
import traceback
from typing import Any, NoReturn

from . import copies, namespaces, syscalls, users, wire, zygote
from .supervisor import Run, Surroundings

__all__ = ["main"]

_LEAVE_LIMIT = 5.0


def main(control_fd: int, tier: str, warm: bool) -> NoReturn:
    """Serve runs until the control socket ends.

    Args:
        control_fd: Stream socket to the caller; each byte comes with the socket of one run.
        tier: ``namespaces`` or ``limits``.
        warm: Keep a process with the usual libraries imported.
    """
    os.chdir("/")
    os.closerange(3, control_fd)
    os.closerange(control_fd + 1, 4096)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    control = socket.socket(fileno=control_fd)
    isolated = tier == "namespaces"
    ready: dict[str, Any] = {"type": "ready", "python": list(sys.version_info[:3]), "path": [p for p in sys.path if p]}
    if isolated:
        unavailable = users.enter_own_namespace()
        if unavailable:
            wire.send(control, {**ready, "unavailable": unavailable})
            os._exit(0)
        _become_first(control)
    surroundings = Surroundings(warm=warm)
    if isolated:
        surroundings.layout = namespaces.layout()
        for bind in surroundings.layout.binds:
            # Only the top is looked at: a tree that was installed with a tight umask is tight throughout.
            bind.private = users.is_private(bind.source, deep=False) or _tight_packages(bind.source)
    if warm and isolated:
        surroundings.zygote, ours = socket.socketpair(socket.AF_UNIX, wire.PACKET)
        surroundings.zygote_pid = os.fork()
        if surroundings.zygote_pid == 0:
            control.close()
            surroundings.zygote.close()
            zygote.main(ours)
        ours.close()
        surroundings.packages = _packages(surroundings)  # while the warm process imports
        ready.update(zygote.receive_ready(surroundings.zygote))
    elif warm:
        ready.update(zygote.import_libraries())
    if isolated and not surroundings.packages:
        surroundings.packages = _packages(surroundings)
    surroundings.loaded = ready.pop("loaded", [])
    gc.collect()
    gc.freeze()
    wire.send(control, ready)
    _serve(control, surroundings)


def _packages(surroundings: Surroundings) -> list[str]:
    assert surroundings.layout is not None
    return copies.package_folders(bind.source for bind in surroundings.layout.binds)


def _tight_packages(library: str) -> bool:
    return any(users.is_private(path, deep=False) for path in glob.glob(f"{library}/python3*/site-packages"))


def _become_first(control: socket.socket) -> None:
    """Go on as process 1 of the new pid namespace: when it ends, the kernel ends everything below it."""
    pid = os.fork()
    if pid:
        control.close()
        os.waitpid(pid, 0)
        os._exit(0)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)


def _serve(control: socket.socket, surroundings: Surroundings) -> NoReturn:
    wake, waker = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(control.fileno(), select.POLLIN)
    poll.register(wake, select.POLLIN)
    own_pid = os.getpid()
    while True:
        for fd, _ in poll.poll():
            if fd == wake:
                os.read(wake, 4096)
                _reap(surroundings.zygote_pid)
                continue
            data, fds, _, _ = socket.recv_fds(control, 1, 1)
            if not data:
                _leave(surroundings.zygote_pid)
            for run in fds:
                try:
                    pid = os.fork()
                except OSError:
                    pid = -1  # no room for a process; closing the socket tells the caller, who tries again
                if pid == 0:
                    _supervise(own_pid, run, (control.fileno(), wake, waker), surroundings)
                os.close(run)


def _supervise(parent: int, run: int, inherited: tuple[int, ...], surroundings: Surroundings) -> NoReturn:
    code = 1
    try:
        if sys.platform.startswith("linux"):
            # The helper has one thread, so this cannot fire while it lives.
            syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for fd in inherited:
            os.close(fd)
        caller = socket.socket(fileno=run)
        pidfds = [os.pidfd_open(os.getpid())] if hasattr(os, "pidfd_open") else []
        socket.send_fds(caller, [b"h"], pidfds)
        for fd in pidfds:
            os.close(fd)
        request = wire.receive(caller)
        if request is not None and "ping" in request:
            _ping(surroundings.zygote)
            wire.send(caller, {"type": "pong"})
        elif request is not None:
            Run(caller, request, surroundings).execute()
        code = 0
    except BrokenPipeError:
        code = 0  # the caller has gone; so has the run
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _ping(warm: socket.socket | None) -> None:
    """Return once the warm process has answered; the caller bounds the wait."""
    if warm is None:
        return
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            socket.send_fds(warm, [b"ping"], [theirs.fileno()])
        if not ours.recv(1):
            raise OSError("the warm process was killed")


def _leave(zygote_pid: int) -> NoReturn:
    """The caller has gone: let the supervisors, who see it too, clean up; then end, and all else with this process."""
    if zygote_pid > 0:
        os.kill(zygote_pid, signal.SIGKILL)
    until = time.monotonic() + _LEAVE_LIMIT
    while time.monotonic() < until:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.005)
        except ChildProcessError:
            break
    os._exit(0)


def _reap(zygote_pid: int) -> None:
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid == zygote_pid:
            os._exit(1)  # the caller starts both afresh
