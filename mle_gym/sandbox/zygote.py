"""The warm process: a single-threaded interpreter that has the usual libraries imported and forks per run.

A program is forked from here straight into the pid namespace of its sandbox, and joins the other namespaces itself.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import time
from typing import Any, NoReturn

from . import program, syscalls, wire

__all__ = ["NAMESPACES", "import_libraries", "main", "receive_ready"]

_MODULES = (
    *("numpy", "pandas", "threadpoolctl", "joblib", "scipy.sparse", "scipy.stats"),
    *("sklearn.linear_model", "sklearn.ensemble", "sklearn.tree", "sklearn.svm", "sklearn.neighbors"),
    *("sklearn.naive_bayes", "sklearn.neural_network", "sklearn.discriminant_analysis", "sklearn.cluster"),
    *("sklearn.preprocessing", "sklearn.pipeline", "sklearn.compose", "sklearn.impute", "sklearn.decomposition"),
    *("sklearn.model_selection", "sklearn.metrics", "sklearn.feature_selection", "sklearn.dummy"),
    *("sklearn.feature_extraction.text", "sklearn.calibration", "sklearn.multiclass", "sklearn.multioutput"),
)
NAMESPACES = ("pid", "user", "mnt", "net", "ipc", "uts")
"""In the order of the descriptors that a request to fork carries."""


def receive_ready(sock: socket.socket) -> dict[str, Any]:
    """Wait for what :func:`main` says when its imports are done; {} when it died."""
    data, fds, _, _ = socket.recv_fds(sock, 16, 1)
    if not data:
        return {"unavailable": "the warm process died while it imported its libraries"}
    with socket.socket(fileno=fds[0]) as stream:
        return wire.receive(stream) or {}


def main(sock: socket.socket) -> NoReturn:
    """Import, then fork programs for supervisors until the helper ends.

    Each packet on ``sock`` carries the descriptors named in :func:`_start`.
    """
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    ready = import_libraries()
    here, there = socket.socketpair()
    socket.send_fds(sock, [b"ready"], [there.fileno()])
    there.close()
    wire.send(here, ready)
    here.close()
    gc.collect()
    gc.freeze()
    wake, waker = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    running: dict[int, socket.socket] = {}
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == wake:
                os.read(wake, 4096)
                _reap(running)
                continue
            data, fds, _, _ = socket.recv_fds(sock, 16, 16)
            if not data:
                os._exit(0)
            if data == b"ping":
                _answer(fds)
            else:
                _start(fds, own_pids, running)


def _answer(fds: list[int]) -> None:
    with socket.socket(fileno=fds[0]) as link, contextlib.suppress(BrokenPipeError):  # who asked has given up
        link.send(b"p")


def _start(fds: list[int], own_pids: int, running: dict[int, socket.socket]) -> None:
    """Fork one program.

    Args:
        fds: Stream socket to the supervisor, the program's stdout, stderr and report ends, then the namespaces pid,
            user, mnt, net, ipc and uts.
        own_pids: The pid namespace to come back to.
        running: Receives process id -> socket.
    """
    link = socket.socket(fileno=fds[0])
    streams = program.Streams(*fds[1:4])
    try:
        syscalls.setns(fds[4], syscalls.CLONE_NEWPID)
        pid = os.fork()
    except OSError:
        pid = -1  # the sandbox ended meanwhile; closing the socket tells its supervisor
    if pid == 0:
        _join(link, streams, fds[5:])
    syscalls.setns(own_pids, syscalls.CLONE_NEWPID)
    for fd in fds[1:]:
        os.close(fd)
    if pid > 0:
        if _announce(link, pid):
            running[pid] = link
        else:
            link.close()
    else:
        link.close()


def _announce(link: socket.socket, pid: int) -> bool:
    """Give the supervisor hold of the program; where it has died, end the program, for nobody else would."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:  # no descriptor left
        os.kill(pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
        return False
    try:
        socket.send_fds(link, [b"p"], [pidfd])
    except OSError:
        os.kill(pid, signal.SIGKILL)
        return False
    finally:
        os.close(pidfd)
    return True


def _join(link: socket.socket, streams: program.Streams, namespaces: list[int]) -> NoReturn:
    try:
        request = wire.receive(link)
        if request is None:
            os._exit(1)
        for fd in namespaces:
            syscalls.setns(fd, 0)
        program.become_user()
        program.become(request, True, streams)
    except BaseException as error:
        print(f"the sandbox failed to start the program: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(71)


def _reap(running: dict[int, socket.socket]) -> None:
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        link = running.pop(pid, None)
        if link is None:
            continue
        cpu = usage.ru_utime + usage.ru_stime
        with link:
            try:
                exit_code = os.waitstatus_to_exitcode(status)
                wire.send(link, {"exit": exit_code, "cpu": cpu, "peak": usage.ru_maxrss / 1024})
            except BrokenPipeError:
                continue  # its supervisor has died


def import_libraries() -> dict[str, Any]:
    """Import what most programs use; returns what the caller should know about it."""
    begun = time.monotonic()
    missing = []
    for name in _MODULES:
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
    failed = ""
    if not missing:
        try:
            _rehearse()
        except Exception as error:
            failed = f"{type(error).__name__}: {error}"
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return {
        "pid": os.getpid(),
        "missing": missing,
        "rehearsal_failed": failed,
        "threads": len(os.listdir("/proc/self/task")) if sys.platform.startswith("linux") else 1,
        "loaded": sorted({os.path.realpath(file) for file in files if file}),
        "seconds": time.monotonic() - begun,
    }


def _rehearse() -> None:
    """Do once, on a made-up table, what most programs do: much is imported only at the first call."""
    import io
    import warnings

    numpy, pandas = sys.modules["numpy"], sys.modules["pandas"]

    def part(name: str) -> Any:
        return importlib.import_module(f"sklearn.{name}")

    rows = [f"{i},{i % 7 / 7},{'xyz'[i % 3]},word{i % 5} other,{i % 2}" for i in range(60)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = pandas.read_csv(io.StringIO("id,a,b,t,y\n1,,x,w,0\n" + "\n".join(rows)))
        table.groupby("b")["a"].mean()
        pandas.get_dummies(table[["a", "b"]]).fillna(0).describe()
        repr(table)
        table["a"] = table["a"].fillna(table["a"].median())
        numeric, labels = table[["id", "a"]], table["y"]
        columns = part("compose").ColumnTransformer(
            [
                ("number", part("preprocessing").StandardScaler(), ["id", "a"]),
                ("category", part("preprocessing").OneHotEncoder(handle_unknown="ignore"), ["b"]),
                ("text", part("feature_extraction.text").TfidfVectorizer(), "t"),
            ]
        )
        pipeline = part("pipeline").make_pipeline(columns, part("linear_model").LogisticRegression())
        part("model_selection").cross_val_score(pipeline, table, labels, cv=2)
        for model in (
            part("linear_model").LogisticRegression(),
            part("linear_model").Ridge(),
            part("ensemble").RandomForestClassifier(2, random_state=0),
            part("ensemble").RandomForestRegressor(2, random_state=0),
            part("ensemble").HistGradientBoostingClassifier(max_iter=2),
            part("neighbors").KNeighborsClassifier(),
        ):
            predicted = model.fit(numeric, labels).predict(numeric)
        part("metrics").accuracy_score(labels, predicted > 0.5)
        part("metrics").roc_auc_score(labels, predicted)
        part("model_selection").train_test_split(numeric, labels, stratify=labels)
        pandas.DataFrame({"id": table["id"], "y": numpy.round(predicted, 3)}).to_csv(io.StringIO(), index=False)
