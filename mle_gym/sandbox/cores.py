"""Exclusive cores, leased across every process of the machine through locked files."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["CoreLease", "available_cores"]

_POLL, _LINE_POLL = 0.005, 0.05
_PATIENCE, _MOST_PATIENCE, _PAUSE = 2.0, 60.0, 0.05
"""Seconds that one wish collects cores before it lets others by, at first and at most; and how long it stands back."""
_WARN_AFTER = 60.0
_ROOT = "/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir()
"""Not $TMPDIR, which may differ between processes that must see each other."""
_log = logging.getLogger(__name__)


def available_cores() -> list[int]:
    """Cores this process may run on, in order."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class CoreLease:
    """Cores that no other lease on this machine holds, until ``release`` or the end of this process.

    A learner takes its own with ``CoreLease.reserve(1)``, so that programs never share a core with it. Leases of
    processes that die end with them. Containers that do not share ``/tmp`` do not see each other.
    """

    def __init__(self, cores: tuple[int, ...], descriptors: tuple[int, ...]) -> None:
        self._descriptors = descriptors
        self._cores = cores
        _leases.add(self)

    @property
    def cores(self) -> tuple[int, ...]:
        """Core numbers; empty for a lease of nothing or one that was released."""
        return self._cores

    @classmethod
    def acquire(
        cls,
        count: int,
        *,
        cancel: threading.Event | None = None,
        timeout: float | None = None,
        closing: threading.Event | None = None,
    ) -> CoreLease:
        """Wait for ``count`` exclusive cores, first come first served within this process.

        A wish that is not met for some seconds gives its place up to those behind it and tries again.

        Args:
            count: Cores wanted; 0 gives an empty lease at once.
            cancel: Ends the wait when set.
            timeout: Seconds to wait; None waits for ever.
            closing: As ``cancel``.

        Raises:
            ValueError: ``count`` is negative or more than this process may ever run on.
            TimeoutError: ``timeout`` passed, or ``cancel`` or ``closing`` was set.
        """
        total = len(available_cores())
        if count < 0 or count > total:
            raise ValueError(f"cores={count} is out of range: this process may run on {total} cores.")
        if count == 0:
            return cls((), ())
        begun, warned = time.monotonic(), False

        def over() -> bool:
            late = timeout is not None and time.monotonic() - begun >= timeout
            return late or any(flag is not None and flag.is_set() for flag in (cancel, closing))

        patience = _PATIENCE
        while True:
            with _turn(count, over):
                lease = cls._gather(count, over, patience)
                while lease is None and not over() and not _smaller_wish(count):
                    warned = warned or _warn(count, time.monotonic() - begun)
                    time.sleep(_PAUSE)  # only other processes are let by
                    lease = cls._gather(count, over, patience)
            if lease is not None:
                return lease
            waited = time.monotonic() - begun
            if over():
                raise TimeoutError(f"no {count} free cores after {waited:.1f} s.")
            warned = warned or _warn(count, waited)
            # Longer each time, so that programs that take long are outlasted; the pause lets smaller wishes by.
            patience = min(2 * patience, _MOST_PATIENCE)
            time.sleep(_PAUSE)

    @classmethod
    def _gather(cls, count: int, over: Callable[[], bool], patience: float) -> CoreLease | None:
        """Collect free cores as they come; None, and all of them free again, once ``over`` or out of patience.

        One process at a time collects, so a wish for many is not starved by many wishes for one. Out of patience it
        lets go, because what it waits for may be kept for good, by a learner say, and others need what it holds.
        """
        cores: list[int] = []
        descriptors: list[int] = []
        turn, since = None, 0.0
        try:
            while True:
                if turn is None:
                    turn, since = _lock("turn"), time.monotonic()
                for core in available_cores() if turn is not None else ():
                    fd = _lock(str(core)) if len(cores) < count and core not in cores else None
                    if fd is not None:
                        cores.append(core)
                        descriptors.append(fd)
                if len(cores) == count:
                    lease = cls(tuple(sorted(cores)), tuple(descriptors))
                    descriptors = []
                    return lease
                if over() or (turn is not None and time.monotonic() - since >= patience):
                    return None
                time.sleep(_POLL)
        finally:
            for fd in descriptors if turn is None else (*descriptors, turn):
                os.close(fd)

    @classmethod
    def reserve(cls, count: int, *, leave: int = 1) -> CoreLease:
        """Lease up to ``count`` cores for this process itself, never the last ``leave`` ones.

        On a machine with a single core it leases nothing, and learner and programs share that core.
        """
        spare = max(0, min(count, len(available_cores()) - leave))
        while spare:
            lease = cls._try(spare)
            if lease is not None:
                return lease
            spare -= 1
        return cls((), ())

    @classmethod
    def _try(cls, count: int) -> CoreLease | None:
        cores: list[int] = []
        descriptors: list[int] = []
        for core in available_cores():
            if len(cores) == count:
                break
            fd = _lock(str(core))
            if fd is not None:
                cores.append(core)
                descriptors.append(fd)
        if len(cores) == count:
            return cls(tuple(cores), tuple(descriptors))
        for fd in descriptors:
            os.close(fd)
        return None

    def release(self) -> None:
        """Give the cores back; idempotent."""
        descriptors, self._descriptors, self._cores = self._descriptors, (), ()
        for fd in descriptors:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.release()


_leases: weakref.WeakSet[CoreLease] = weakref.WeakSet()


@dataclass(frozen=True, eq=False)
class _Wish:
    count: int


_queue: deque[_Wish] = deque()
_changed = threading.Condition()


@contextlib.contextmanager
def _turn(count: int, over: Callable[[], bool]) -> Iterator[None]:
    """Stand in this process's line for cores; the body runs at its head."""
    ticket = _Wish(count)
    with _changed:
        _queue.append(ticket)
    try:
        while True:
            with _changed:
                if _queue[0] is ticket:
                    break
                _changed.wait(_LINE_POLL)
                first = _queue[0] is ticket
            if not first and over():
                raise TimeoutError("the wait for cores ended before its turn came.")
        yield
    finally:
        with _changed:
            _queue.remove(ticket)
            _changed.notify_all()


def _warn(count: int, waited: float) -> bool:
    """Say that a wait is long, once it is; whether that was said."""
    if waited > _WARN_AFTER:
        _log.warning("waiting for %d free cores since %.0f s; other leases hold them", count, waited)
    return waited > _WARN_AFTER


def _smaller_wish(count: int) -> bool:
    """Whether somebody in the line wants fewer cores, and so may get them where this wish does not."""
    with _changed:
        return any(wish.count < count for wish in _queue)


def _folder() -> Path:
    """A folder that all users of the machine share, so that their leases exclude each other."""
    folder = Path(_ROOT) / "mle_gym-cores"
    folder.mkdir(exist_ok=True)
    info = folder.stat()
    if info.st_uid == os.geteuid() and stat.S_IMODE(info.st_mode) != 0o1777:
        folder.chmod(0o1777)
    return folder


def _lock(name: str) -> int | None:
    """Lock one file of the folder; None when somebody else has it."""
    import fcntl

    path = _folder() / name
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        fd = os.open(path, flags)
    except FileNotFoundError:
        fd = os.open(path, flags | os.O_CREAT, 0o644)
        os.fchmod(fd, 0o644)  # whatever the umask, other users must be able to open it
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def _after_fork_in_child() -> None:
    """Let go of the parent's leases: closing a copy leaves the parent's locks alone."""
    global _changed
    _changed = threading.Condition()
    _queue.clear()
    for lease in list(_leases):
        lease.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
