"""The supervisor of one run: outside the sandbox, it measures, bounds, kills and collects.

It is forked from the warm process, so it starts within milliseconds, and speaks to the caller over one socket whose
end is its lifeline: when the caller dies, the run dies.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import copies, init, meters, namespaces, plan, program, saferead, syscalls, users, verdict, wire, zygote
from .capture import Capture

__all__ = ["Run", "Surroundings"]

_MAX_MILESTONES, _MILESTONE = 64, re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,63}")
_MAX_REPORTS = 4096
_KILL_GRACE, _DISK_POLL = 2.0, 0.25

_TRANSIENT = (errno.EAGAIN, errno.ENOMEM, errno.ENOSPC)
"""What a full machine answers to a fork or a new namespace; it may have room a moment later."""


@dataclass
class Surroundings:
    """What the helper knows when it forks a supervisor."""

    warm: bool
    layout: namespaces.Layout | None = None
    """Mounts of the interpreter; None in the tier without isolation."""
    zygote: socket.socket | None = None
    """Packet socket to the warm process; None when there is none, or when this process itself is warm."""
    zygote_pid: int = -1
    loaded: list[str] = field(default_factory=list)
    """Resolved files of the modules that the warm process has imported."""
    packages: list[str] = field(default_factory=list)
    """Resolved package folders that programs can see."""


class Run:
    """One run, from request to result.

    Args:
        caller: Stream socket to the caller: frames out; any byte in cancels; its end kills.
        request: What :class:`~mle_gym.sandbox.local.LocalSandbox` sent.
        around: What the helper knows.
    """

    def __init__(self, caller: socket.socket, request: dict[str, Any], around: Surroundings) -> None:
        self.caller = caller
        self.request = request
        self.layout = around.layout
        self.isolated = around.layout is not None
        # A module that was imported before the mask existed would show what the mask hides.
        hidden = copies.every_copy(request["hidden"], request["hidden_tails"], around.packages)
        request["hidden"] = hidden
        seen = any(path == h or path.startswith(h + "/") for h in hidden for path in around.loaded)
        request["warm"] = around.warm and not seen
        self.zygote = around.zygote if request["warm"] else None
        request["remote"] = self.zygote is not None
        self.workdir = -1
        self.start = self.end = 0.0
        self.cut, self.killed_at = "", 0.0
        self.limit_hit = self.failure = self.unserved = ""
        self.link: socket.socket | None = None
        self.pidfd = -1
        self.cpu_before = 0.0
        self.reports = 0
        self.walked = 0.0
        self.milestones: dict[str, tuple[float, str]] = {}

    def execute(self) -> None:
        """Run to the end and send the result."""
        kills = verdict.oom_kills()
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        self.out, self.err = Capture(out), Capture(err)
        self.report, report_end = socket.socketpair(socket.AF_UNIX, wire.PACKET)
        self.control, control_end = socket.socketpair(socket.AF_UNIX, wire.PACKET)
        try:
            user = users.choose() if self.isolated else None
            root = plan.root_spec(self.request, self.layout, user)
            plan.complete(self.request, self.isolated)
            if not self.isolated:
                self.workdir = os.open(self.request["job"]["workdir"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                pid = self._fork()
            except OSError as error:
                if error.errno in _TRANSIENT and not _forbidden():
                    self._send(lost=f"the kernel has no room for a new process ({error.strerror})")
                    return
                raise namespaces.Refused(f"the kernel gives no new namespaces ({error.strerror})") from error
            if pid == 0:
                for fd in (out, err):
                    os.close(fd)
                for sock in (self.report, self.control, self.caller):
                    sock.close()
                if self.zygote is not None:
                    self.zygote.close()
                init.main(self.request, root, program.Streams(out_end, err_end, report_end.fileno()), control_end)
            control_end.close()
            self.ends = [out_end, err_end, report_end.detach()]
            if user is not None:
                self._map(user)
            if self.zygote is None:
                self._close_ends()
            self.control.send(b"g")
            final = self._watch()
            self._close_ends()
            self._end_first_process(pid)
            self._drain()
            self._finish(final, verdict.oom_kills() > kills)
        except namespaces.Refused as refused:
            self._send(unavailable=str(refused))
        finally:
            plan.remove(self.request["scratch"])

    def _fork(self) -> int:
        if self.isolated:
            return syscalls.clone(namespaces.NAMESPACES)
        if sys.platform.startswith("linux"):
            syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        return os.fork()

    def _map(self, user: users.User) -> None:
        """Give the first process its user, and take hold of its namespaces while it lets us."""
        _, fds = _receive(self.control)
        if not fds:
            raise OSError("the first process of the sandbox was killed")
        user.map(fds[0])
        if self.zygote is not None:
            self.ends += [os.open(f"ns/{kind}", os.O_RDONLY, dir_fd=fds[0]) for kind in zygote.NAMESPACES]
        os.close(fds[0])

    def _close_ends(self) -> None:
        for fd in self.ends:
            os.close(fd)
        self.ends = []

    def _ask_zygote(self) -> None:
        """Have the warm process fork the program into the namespaces, which are complete now."""
        assert self.zygote is not None
        self.link, theirs = socket.socketpair()
        self.poll.register(self.link.fileno(), select.POLLIN)
        keys = ("limits", "disk_in_memory", "cores", "warm", "job")
        try:
            with theirs:
                socket.send_fds(self.zygote, [b"start"], [theirs.fileno(), *self.ends])
            wire.send(self.link, {key: self.request[key] for key in keys})
        except OSError:
            self._lost("the warm process was killed")
        self._close_ends()

    def _send(self, **result: Any) -> None:
        wire.send(self.caller, {"type": "result", **result})

    def _watch(self) -> dict[str, Any]:
        """Read everything until the first process has told how the run ended; {} when it never tells."""
        self.captures = {self.out.fd: self.out, self.err.fd: self.err}
        self.poll = select.poll()
        for fd in (*self.captures, self.control.fileno(), self.report.fileno(), self.caller.fileno()):
            self.poll.register(fd, select.POLLIN)
        limit = self.request["limits"]["time"]
        while True:
            now = time.monotonic()
            if self.start and not self.cut and not self.end and now >= self.start + limit:
                self._cut("timeout")
            if self.killed_at and now >= self.killed_at + _KILL_GRACE:
                return {}
            stop = self.killed_at + _KILL_GRACE if self.killed_at else self.start + limit if self.start else None
            if self.request["scratch"] and not self.killed_at:
                stop = min(now + _DISK_POLL, stop or now + _DISK_POLL)
                if now >= self.walked + _DISK_POLL:
                    self.walked = now
                    if self._folder_full():
                        self._cut("disk")
            for fd, _ in self.poll.poll(None if stop is None else (stop - now) * 1000 + 1):
                if fd == self.control.fileno():
                    message, fds = _receive(self.control)
                    if not fds:
                        return wire.decode(message) if message else {}
                    self.workdir = fds[0]
                    if self.zygote is not None:
                        self._ask_zygote()
                elif not self._handle(fd):
                    self.poll.unregister(fd)

    def _handle(self, fd: int) -> bool:
        """Serve one readable descriptor; False when nothing more will come from it."""
        if fd in self.captures:
            return self._read(fd)
        if fd == self.report.fileno():
            return self._read_report()
        if fd == self.pidfd:
            self.end = time.monotonic()
            self._kill()
        elif fd == self.caller.fileno():
            self._cut("cancelled" if self.caller.recv(64) else "orphaned")
        else:
            assert self.link is not None
            _, fds = _receive(self.link, 1)
            if fds:
                self.pidfd = fds[0]
                self.poll.register(self.pidfd, select.POLLIN)
            else:
                self._lost("the warm process could not fork the program or was killed")
        return False

    def _folder_full(self) -> bool:
        """Tell whether the program's host folder is full; as its user one could be shut out, here one cannot."""
        scratch = self.request["scratch"]
        return bool(scratch) and meters.folder_mb(scratch) > float(self.request["limits"]["disk_mb"])

    def _lost(self, why: str) -> None:
        self.failure = self.failure or why
        self.unserved = "" if self.start else why
        self._kill()

    def _kill(self) -> None:
        """Have the first process end everything."""
        if not self.killed_at:
            self.killed_at = time.monotonic()
            try:
                self.control.send(b"k")
            except OSError:
                return  # it ended by itself at this very moment

    def _cut(self, why: str) -> None:
        if not self.cut and not self.end:
            self.cut = why
            self._kill()

    def _read(self, fd: int) -> bool:
        data = os.read(fd, 1 << 16)
        self.captures[fd].add(data)
        if self.out.total + self.err.total > self.request["limits"]["output_kb"] << 10:
            self._cut("output")
        return bool(data) and self.cut != "output"

    def _read_report(self) -> bool:
        data = self.report.recv(4096)
        self.reports += 1
        if self.reports > _MAX_REPORTS:
            self.report.shutdown(socket.SHUT_RDWR)  # else a program that floods would wait for us
            return False
        if not data:
            return False
        now = time.monotonic()
        try:
            message = wire.decode(data)
        except (ValueError, RecursionError):
            return True  # only a program that forges reports sends such a thing
        if not self.start:
            # Until it has started, the process runs our code alone.
            if "failed" in message:
                self.failure = f"the hooks failed: {message['failed']}"
            elif "start" in message:
                self.start = float(message["start"])
                self.cpu_before = float(message["cpu"])
                wire.send(self.caller, {"type": "started"})
                return True
        name, allowed = message.get("milestone"), self.request["program"]["context"].get("milestones")
        valid = isinstance(name, str) and bool(_MILESTONE.fullmatch(name)) and (allowed is None or name in allowed)
        if valid and len(self.milestones) < _MAX_MILESTONES:
            since = max(0.0, now - self.start) if self.start else 0.0
            self.milestones.setdefault(str(name), (since, "interpreter"))
        if message.get("limit") in ("memory", "disk"):
            self.limit_hit = message["limit"]
        return True

    def _drain(self) -> None:
        """Read what is left in the pipes; every writer is dead."""
        for fd in self.captures:
            os.set_blocking(fd, False)
            while self.cut != "output":
                try:
                    if not self._read(fd):
                        break
                except BlockingIOError:
                    break
        self.report.setblocking(False)
        while True:
            try:
                if not self._read_report():
                    break
            except BlockingIOError:
                break

    def _end_first_process(self, pid: int) -> None:
        """Wait for the first process; kill it and all below when it does not end."""
        until = time.monotonic() + _KILL_GRACE
        if hasattr(os, "pidfd_open"):
            fd = os.pidfd_open(pid)
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            if not poll.poll(_KILL_GRACE * 1000):
                os.kill(pid, signal.SIGKILL)
            os.close(fd)
        while time.monotonic() < until + _KILL_GRACE:
            ended, _ = os.waitpid(pid, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)
        if not self.isolated:
            for orphan in meters.descendants(os.getpid()):
                try:
                    os.kill(orphan, signal.SIGKILL)
                except ProcessLookupError:
                    continue

    def _finish(self, final: dict[str, Any], oom: bool) -> None:
        if "refused" in final:
            self._send(unavailable=final["refused"])
            return
        if not self.start and not self.cut and self.unserved:
            self._send(lost=self.unserved)  # nothing has happened yet, so the caller may try again
            return
        wire.send(self.caller, {"type": "ended"})
        self._merge_exit(final)
        if not self.cut and self._folder_full():
            final["reason"] = "disk"
        self.end = self.end or final.get("end", time.monotonic())
        artifacts, refused = self._collect()
        self._kernel_milestone()
        status, message = verdict.judge(
            verdict.Evidence(
                limits=self.request["limits"],
                started=bool(self.start),
                cut=self.cut,
                failure=self.failure,
                limit_hit=self.limit_hit,
                final=final,
                oom=oom,
                stderr=self.err.text(),
            )
        )
        reached = sorted(self.milestones.items(), key=lambda item: item[1][0])
        self._send(
            status=status,
            message=message,
            exit_code=None if self.cut or final.get("killed") else final.get("exit"),
            stdout=self.out.text(),
            stderr=self.err.text(),
            start=self.start,
            end=self.end,
            cpu=max(0.0, final.get("cpu", 0.0) - self.cpu_before),
            peak=final.get("peak", 0.0),
            milestones=[[name, min(at, self.end - self.start), evidence] for name, (at, evidence) in reached],
            artifacts=artifacts,
            refused=refused,
            warm=self.request["warm"],
        )

    def _merge_exit(self, final: dict[str, Any]) -> None:
        """Add what the warm process, the program's parent, knows about its end."""
        if self.link is None:
            return
        self.link.settimeout(_KILL_GRACE)
        try:
            told = wire.receive(self.link)
        except OSError:
            told = None
        self.link.close()
        if told is None:
            self.failure = self.failure or "the warm process was killed"
        elif final:
            final["exit"] = told["exit"]
            final["cpu"] += told["cpu"]
            final["peak"] = max(final["peak"], told["peak"])

    def _collect(self) -> tuple[list[str], dict[str, str]]:
        taken: list[str] = []
        refused: dict[str, str] = {}
        if self.workdir < 0:
            return taken, refused
        for name in self.request["collect"]:
            destination = Path(self.request["artifacts_dir"]) / name
            try:
                saferead.copy_out(self.workdir, name, destination, int(self.request["max_artifact_mb"] * 2**20))
            except FileNotFoundError:
                continue
            except saferead.UnsafeFile as error:
                refused[name] = f"it {error}"
            else:
                taken.append(name)
        return taken, refused

    def _kernel_milestone(self) -> None:
        """Credit the submission by looking at it from outside."""
        name = os.path.basename(str(self.request["program"]["context"].get("submission", "submission.csv")))
        if self.workdir < 0 or not self.start:
            return
        try:
            fd = saferead.open_regular(self.workdir, name, 2**62)
        except (FileNotFoundError, saferead.UnsafeFile):
            return
        if os.fstat(fd).st_size > 0:
            at = self.milestones.get("wrote_submission", (self.end - self.start, ""))[0]
            self.milestones["wrote_submission"] = (at, "kernel")
        os.close(fd)


def _forbidden() -> bool:
    """Whether a limit of 0 namespaces, which the kernel reports as if the machine were full, is why there are none."""
    for path in glob.glob("/proc/sys/user/max_*_namespaces"):
        with open(path, encoding="ascii") as file:
            if file.read().strip() == "0":
                return True
    return False


def _receive(sock: socket.socket, size: int = 1 << 16) -> tuple[bytes, list[int]]:
    """Receive data and descriptors; nothing at the end.

    A peer that ends with something unread makes the next call fail once, even where data wait.
    """
    for _ in range(2):
        try:
            data, fds, _, _ = socket.recv_fds(sock, size, 1)
        except ConnectionResetError:
            continue
        return data, list(fds)
    return b"", []
