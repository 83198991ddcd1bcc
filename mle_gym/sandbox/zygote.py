"""The warm process: a clean, single-threaded interpreter that has the usual libraries imported and forks per run.

Started as its own program with an allow-listed environment, never forked from the trainer, so its memory holds
nothing worth stealing. Every run gets a supervisor forked from here, and the program is forked from that.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
import socket
import sys
import time
from typing import Any, NoReturn

from . import namespaces, syscalls, wire
from .supervisor import Run

__all__ = ["main"]

_MODULES = (
    *("numpy", "pandas", "threadpoolctl", "joblib", "scipy.sparse", "scipy.stats"),
    *("sklearn.linear_model", "sklearn.ensemble", "sklearn.tree", "sklearn.svm", "sklearn.neighbors"),
    *("sklearn.naive_bayes", "sklearn.neural_network", "sklearn.discriminant_analysis", "sklearn.cluster"),
    *("sklearn.preprocessing", "sklearn.pipeline", "sklearn.compose", "sklearn.impute", "sklearn.decomposition"),
    *("sklearn.model_selection", "sklearn.metrics", "sklearn.feature_selection", "sklearn.dummy"),
    *("sklearn.feature_extraction.text", "sklearn.calibration", "sklearn.multiclass", "sklearn.multioutput"),
)


def main(control_fd: int, warm: bool) -> NoReturn:
    """Serve fork requests until the control socket ends.

    Args:
        control_fd: Stream socket to the caller; each byte comes with the socket of one run.
        warm: Import the usual libraries first.
    """
    os.chdir("/")
    os.closerange(3, control_fd)
    os.closerange(control_fd + 1, 4096)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    control = socket.socket(fileno=control_fd)
    started = time.monotonic()
    missing = _import_libraries() if warm else []
    ready = {
        "type": "ready",
        "pid": os.getpid(),
        "python": list(sys.version_info[:3]),
        "prefixes": sorted({sys.prefix, sys.base_prefix}),
        "path": [p for p in sys.path if p],
        "missing": missing,
        "threads": _threads(),
        "seconds": time.monotonic() - started,
    }
    loaded = sorted({os.path.realpath(f) for m in list(sys.modules.values()) if (f := getattr(m, "__file__", None))})
    known = namespaces.layout()
    gc.collect()
    gc.freeze()
    wire.send(control, ready)
    wake, waker = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(control_fd, select.POLLIN)
    poll.register(wake, select.POLLIN)
    own_pid = os.getpid()
    while True:
        for fd, _ in poll.poll():
            if fd == wake:
                os.read(wake, 4096)
                _reap()
                continue
            data, fds, _, _ = socket.recv_fds(control, 1, 1)
            if not data:
                os._exit(0)
            for run in fds:
                if os.fork() == 0:
                    _supervise(own_pid, run, {control_fd, wake, waker}, known, loaded, warm)
                os.close(run)


def _supervise(
    parent: int, run: int, inherited: set[int], known: namespaces.Layout, loaded: list[str], warm: bool
) -> NoReturn:
    code = 1
    try:
        if sys.platform.startswith("linux"):
            # The warm process has one thread, so this cannot fire while it lives.
            syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for fd in inherited:
            os.close(fd)
        caller = socket.socket(fileno=run)
        hello: dict[str, Any] = {"type": "hello", "pid": os.getpid()}
        wire.send(caller, hello)
        request = wire.receive(caller)
        if request is not None:
            request["warm"] = warm
            if request["limits"]["gpus"]:
                known = namespaces.layout(gpus=True)
            Run(caller, request, known, loaded).execute()
        code = 0
    except BrokenPipeError:
        code = 0  # the caller has gone; so has the run
    finally:
        if code:
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
        os._exit(code)


def _import_libraries() -> list[str]:
    missing = []
    for name in _MODULES:
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
    if "pandas" in sys.modules:
        _touch_lazy_imports()
    return missing


def _touch_lazy_imports() -> None:
    """Read, write and summarise one tiny table: pandas imports much of itself only then."""
    import io

    pandas = sys.modules["pandas"]
    table = pandas.read_csv(io.StringIO("a,b,c\n1,x,0.5\n2,y,\n"))
    table.groupby("b")["a"].mean()
    pandas.get_dummies(table).describe()
    repr(table)
    table.to_csv(io.StringIO(), index=False)


def _threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except FileNotFoundError:
        return 1


def _reap() -> None:
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
