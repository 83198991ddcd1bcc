"""The caller's side of the warm process: starts it, hands it runs, replaces it when it dies, ends it."""

from __future__ import annotations

import atexit
import os
import select
import signal
import site
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import wire
from .base import SandboxUnavailable

__all__ = ["Lost", "WarmProcess", "acquire", "release"]

_HERE = str(Path(__file__).parent)
# A package of its own name, so that mle_gym itself is never imported in there.
_BOOT = (
    "import sys\n"
    "sys.path[:] = [p for p in sys.path if p]\n"
    "import types\n"
    "package = types.ModuleType('_mle_gym_sandbox')\n"
    "package.__path__ = [sys.argv[1]]\n"
    "sys.modules['_mle_gym_sandbox'] = package\n"
    "from _mle_gym_sandbox import helper\n"
    "helper.main(int(sys.argv[2]), sys.argv[3], sys.argv[4] == 'warm')\n"
)
_KEPT_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT")
_START_LIMIT = 180.0
_HELLO_LIMIT, _SETUP_LIMIT, _KILL_LIMIT, _COLLECT_LIMIT = 20.0, 60.0, 5.0, 120.0
_LEAVE_LIMIT = 10.0
_CANCEL_POLL = 0.02


class Lost(Exception):
    """The supervisor or the warm process went away.

    ``started`` says whether the program had begun, ``stuck`` whether the process does not answer at all.
    """

    def __init__(self, message: str, started: bool, stuck: bool = False) -> None:
        super().__init__(message)
        self.started = started
        self.stuck = stuck


@dataclass
class _Deadline:
    """When the caller stops trusting its supervisor."""

    phase: str
    at: float


class WarmProcess:
    """One warm (or cold) process of one interpreter, shared by the sandboxes of this process."""

    def __init__(self, python: str, tier: str, warm: bool) -> None:
        self.key = (python, tier, warm)
        self.users = 0
        self.ready: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._errors: Any = None

    @property
    def pid(self) -> int | None:
        """Process id, None when it does not run."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Begin starting it; returns at once. Imports go on in the background."""
        with self._lock:
            self._start()

    def _start(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self._forget()
        ours, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        env = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        env.update(PYTHONHASHSEED="0", LANG="C.UTF-8", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        env.update(MKL_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", MPLBACKEND="Agg")
        python, tier, warm = self.key
        # Packages of one's own user folder count where this interpreter uses them.
        flags = ["-s"]
        if python == sys.executable and site.ENABLE_USER_SITE:
            flags, env["PYTHONUSERBASE"] = [], site.getuserbase()
        try:
            self._process = subprocess.Popen(
                [python, *flags, "-c", _BOOT, _HERE, str(theirs.fileno()), tier, "warm" if warm else "cold"],
                env=env,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise SandboxUnavailable(f"cannot start the interpreter {python} ({error.strerror}).") from error
        finally:
            theirs.close()
        self._control = ours
        _sockets.add(ours)
        self.ready = {}

    def wait_ready(self) -> dict[str, Any]:
        """Start it if needed, wait for its imports and return what it says about its interpreter.

        Raises:
            SandboxUnavailable: It does not start.
        """
        with self._lock:
            self._start()
            if not self.ready:
                assert self._control is not None
                self._control.settimeout(_START_LIMIT)
                try:
                    ready = wire.receive(self._control)
                except (OSError, ValueError):
                    ready = None
                if ready is None:
                    why = self._last_error()
                    self._end()
                    raise SandboxUnavailable(f"the sandbox's process of {self.key[0]} does not start{why}")
                self._control.settimeout(None)
                if "unavailable" in ready:
                    self._end()
                    raise SandboxUnavailable(ready["unavailable"])
                self.ready = ready
            return self.ready

    def run(
        self, request: dict[str, Any], cancel: threading.Event | None, active: set[socket.socket]
    ) -> dict[str, Any]:
        """Send one run and wait for its result.

        Args:
            request: What the supervisor needs.
            cancel: Ends the run when set.
            active: Holds the run's socket meanwhile; a byte sent there cancels too.

        Raises:
            Lost: The supervisor or the warm process died, or did not answer in time.
            SandboxUnavailable: The process cannot be started at all.
        """
        self.wait_ready()
        ours, theirs = socket.socketpair()
        _sockets.add(ours)
        active.add(ours)
        process = None
        try:
            process = self._hand_over(theirs)
            return _converse(ours, request, cancel)
        except Lost as lost:
            complaint = self._last_error()
            if lost.stuck and process is not None and not self._answers():
                with self._lock:
                    if self._process is process:
                        self._end(kill=True)
            raise Lost(f"{lost}{complaint}", lost.started) from lost
        finally:
            active.discard(ours)
            ours.close()

    def _hand_over(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        """Give the helper one end of a run's socket and close it here; returns the helper's process."""
        with theirs, self._lock:
            if self._control is None or self._process is None:
                raise Lost("the warm process was closed", started=False)
            try:
                socket.send_fds(self._control, [b"r"], [theirs.fileno()])
            except OSError as error:
                self._end()
                raise Lost("the warm process was killed", started=False) from error
            return self._process

    def _answers(self) -> bool:
        """Whether the helper and the warm process still serve: one slow run must not end those of others."""
        ours, theirs = socket.socketpair()
        with ours:
            ours.settimeout(_HELLO_LIMIT)
            try:
                self._hand_over(theirs)
                wire.send(ours, {"ping": True})
                greeting, pidfds, _, _ = socket.recv_fds(ours, 1, 1)
                for fd in pidfds:
                    os.close(fd)
                return bool(greeting) and wire.receive(ours) == {"type": "pong"}
            except (Lost, OSError):
                return False

    def _last_error(self) -> str:
        """What the process last complained about, in brackets."""
        errors = self._errors
        if errors is None:
            return ""
        data = os.pread(errors.fileno(), 1 << 16, max(0, os.fstat(errors.fileno()).st_size - (1 << 16)))
        lines = data.decode(errors="replace").strip().splitlines()
        return f" ({lines[-1]})" if lines else ""

    def close(self) -> None:
        """End the process and every run it still has."""
        with self._lock:
            self._end()

    def _end(self, *, kill: bool = False) -> None:
        process, control = self._process, self._control
        if process is not None and kill:
            process.kill()
        if control is not None:
            control.close()
        if process is not None:
            try:
                process.wait(timeout=_LEAVE_LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._forget()

    def _forget(self) -> None:
        if self._process is not None:
            self._process.poll()
        if self._control is not None:
            self._control.close()
        if self._errors is not None:
            self._errors.close()
        self._process = self._control = self._errors = None

    def abandon(self) -> None:
        """In a forked child: let go of the parent's process without touching it."""
        self._lock = threading.Lock()
        if self._process is not None:
            self._process.returncode = 0  # it is not our child, there is nothing to wait for
        self._process = self._control = self._errors = None


def _converse(sock: socket.socket, request: dict[str, Any], cancel: threading.Event | None) -> dict[str, Any]:
    deadline = _Deadline("to appear", time.monotonic() + _HELLO_LIMIT)
    greeted = started = cancelled = finished = False
    supervisor: int | None = None
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    try:
        sock.settimeout(_SETUP_LIMIT)
        wire.send(sock, request)
        while True:
            wait = deadline.at - time.monotonic()
            if wait <= 0:
                raise Lost(f"the supervisor took too long {deadline.phase}", started, stuck=not started)
            if not poll.poll(min(wait, _CANCEL_POLL if cancel is not None and not cancelled else wait) * 1000):
                if cancel is not None and not cancelled and cancel.is_set():
                    cancelled = True
                    sock.sendall(b"c")
                    deadline = _Deadline("to cancel", time.monotonic() + _KILL_LIMIT)
                continue
            if not greeted:
                data, fds, _, _ = socket.recv_fds(sock, 1, 1)
                greeted, supervisor = bool(data), fds[0] if fds else None
                deadline = _Deadline("to build the sandbox", time.monotonic() + _SETUP_LIMIT)
                if greeted:
                    continue
            message = wire.receive(sock) if greeted else None
            if message is None:
                raise Lost("the supervisor was killed", started)
            kind, now = message["type"], time.monotonic()
            if kind == "started":
                started = True
                if not cancelled:
                    deadline = _Deadline("to end the program", now + request["limits"]["time"] + _KILL_LIMIT)
            elif kind == "ended":
                started = True
                deadline = _Deadline("to collect the files", now + _COLLECT_LIMIT)
            else:
                finished = True
                if "lost" in message:
                    raise Lost(message["lost"], started=False)
                return message
    except (OSError, ValueError) as error:
        raise Lost(f"the supervisor was killed ({error})", started) from error
    finally:
        if supervisor is not None:
            if not finished:
                _kill(supervisor)
            os.close(supervisor)


def _kill(pidfd: int) -> None:
    """End a supervisor that has not ended; everything below it dies with it."""
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return  # it ended by itself


_processes: dict[tuple[str, str, bool], WarmProcess] = {}
_registry_lock = threading.Lock()
_sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def acquire(python: str, tier: str, warm: bool) -> WarmProcess:
    """Return this process's shared warm process of an interpreter; give it back with :func:`release`."""
    key = (python, tier, warm)
    with _registry_lock:
        process = _processes.setdefault(key, WarmProcess(*key))
        process.users += 1
        return process


def release(process: WarmProcess) -> None:
    """Give a shared process back; the last one to do so ends it."""
    with _registry_lock:
        process.users -= 1
        if process.users > 0 or _processes.get(process.key) is not process:
            return
        del _processes[process.key]
    process.close()


def _close_all() -> None:
    with _registry_lock:
        left = list(_processes.values())
        _processes.clear()
    for process in left:
        process.close()


def _after_fork_in_child() -> None:
    """A forked worker starts afresh; the parent's lifelines must not stay open in it."""
    global _registry_lock
    _registry_lock = threading.Lock()
    for sock in list(_sockets):
        sock.close()
    _sockets.clear()
    for process in _processes.values():
        process.abandon()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
