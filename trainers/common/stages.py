"""Where the trainer's time goes, and a watchdog that names the stage that is stuck."""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Stages", "Stalled"]


class Stalled(RuntimeError):
    """A stage made no progress for too long; the message names it."""


class Stages:
    """Times the stages of a loop; only one is open at a time.

    A stage that waits for others calls ``check`` regularly and gets :class:`Stalled` from it. A stage that computes
    cannot be interrupted from inside: a thread watches it, writes every thread's stack to ``stall.txt``, and ends the
    process, which can be resumed from its last checkpoint.

    Args:
        limit: Seconds without progress.
        folder: Where ``stall.txt`` goes.
    """

    EXIT_CODE = 70

    def __init__(self, limit: float, folder: Path) -> None:
        self.limit = limit
        self.folder = folder
        self.seconds: dict[str, float] = {}
        """Total per stage."""
        self._name = ""
        self._beat = time.monotonic()
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time one stage."""
        start = self._beat = time.monotonic()
        self._name = name
        try:
            yield
        finally:
            self._name = ""
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start

    def beat(self) -> None:
        """The open stage made progress."""
        self._beat = time.monotonic()

    def check(self, detail: str) -> None:
        """Raise when the open stage has been without progress for too long.

        Args:
            detail: What it waits for, for the message.

        Raises:
            Stalled: It has.
        """
        idle = time.monotonic() - self._beat
        if idle > self.limit:
            raise Stalled(f"No progress for {idle:.0f} s in the stage '{self._name}': {detail}.")

    def watch(self) -> None:
        """Start watching the computing stages; ``close`` ends it."""
        self._watcher = threading.Thread(target=self._watch, name="stage-watchdog", daemon=True)
        self._watcher.start()

    def close(self) -> None:
        """Stop watching."""
        self._ended.set()
        if self._watcher is not None:
            self._watcher.join()

    def _watch(self) -> None:
        # The stage itself raises at `limit` when it can; twice that means that it cannot.
        while not self._ended.wait(min(5.0, self.limit / 4)):
            name, idle = self._name, time.monotonic() - self._beat
            if name and idle > 2 * self.limit:
                with (self.folder / "stall.txt").open("w", encoding="utf-8") as file:
                    print(f"Stuck for {idle:.0f} s in the stage '{name}'.", file=file, flush=True)
                    faulthandler.dump_traceback(file)
                print(
                    f"mle-gym train: stuck for {idle:.0f} s in the stage '{name}'; stacks are in "
                    f"{self.folder / 'stall.txt'}. Continue with --resume {self.folder}.",
                    file=sys.stderr,
                    flush=True,
                )
                os._exit(self.EXIT_CODE)
