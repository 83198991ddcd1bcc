"""Where the trainer's time goes, and a watchdog that names the stage that is stuck."""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Stages", "Stalled"]

_WORDS = {
    "generate": "generation",
    "wait": "execution",
    "learn": "learning",
    "core": "the wait for a core",
    "sync": "the hand-over of weights",
    "checkpoint": "the writing of a checkpoint",
    "evaluate": "the evaluation",
}
"""Stage -> what people call it."""


class Stalled(RuntimeError):
    """A stage made no progress for too long; the message names it."""


class Stages:
    """Times the stages of a loop; only one is open at a time.

    A stage that waits for others calls ``check`` regularly and gets :class:`Stalled` from it. A stage that computes
    cannot be interrupted from inside: a thread watches it, writes every thread's stack to ``stall.txt``, and ends the
    process, which can be resumed from its last checkpoint. The thread also gives the warning that comes before. It
    only reads what the stages leave for it, so it has no effect on results.

    Args:
        limit: Seconds without progress after which a stage is stuck.
        folder: Where ``stall.txt`` goes.
        warning: Seconds without progress after which a warning is given, once; by default a quarter of ``limit``.
        patience: Stage -> seconds more before the warning and before the end, for what may rightly take long.
        warn: Takes the warning; by default it goes to stderr.
    """

    EXIT_CODE = 70
    GRACE = 5.0
    """Seconds over the limit that a stage has to raise by itself, or the limit where that is less."""

    def __init__(
        self,
        limit: float,
        folder: Path,
        *,
        warning: float | None = None,
        patience: dict[str, float] | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.limit = limit
        self.folder = folder
        self.warning = limit / 4 if warning is None else warning
        self.patience = dict(patience or {})
        self.seconds: dict[str, float] = {}
        """Total per stage."""
        self._name = ""
        self._detail = ""
        self._beat = time.monotonic()
        self._warn = warn or _to_stderr
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None

    @contextmanager
    def __call__(self, name: str, detail: str = "") -> Iterator[None]:
        """Time one stage.

        Args:
            name: Of the stage.
            detail: What it works on or waits for, for the messages.
        """
        start = self._beat = time.monotonic()
        self._name, self._detail = name, detail
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
            detail: What it waits for, for the messages.

        Raises:
            Stalled: It has.
        """
        self._detail = detail
        idle = time.monotonic() - self._beat
        if idle > self._allowed(self._name, self.limit):
            raise Stalled(f"No progress for {idle:.0f} s in {_in_words(self._name, detail)}.")

    def watch(self) -> None:
        """Start watching; ``close`` ends it."""
        self._watcher = threading.Thread(target=self._watch, name="stage-watchdog", daemon=True)
        self._watcher.start()

    def close(self) -> None:
        """Stop watching."""
        self._ended.set()
        if self._watcher is not None:
            self._watcher.join()

    def _allowed(self, name: str, seconds: float) -> float:
        return seconds + self.patience.get(name, 0.0)

    def _watch(self) -> None:
        warned = 0.0
        while not self._ended.wait(min(5.0, self.warning / 4, self.limit / 4)):
            beat, name, detail = self._beat, self._name, self._detail
            idle = time.monotonic() - beat
            limit = self._allowed(name, self.limit)
            if name and beat != warned and idle > self._allowed(name, self.warning):
                warned = beat
                self._warn(
                    f"No progress for {idle:.0f} s in {_in_words(name, detail)}; the run ends when it is {limit:.0f} s."
                )
            if name and idle > limit + min(self.GRACE, self.limit):
                self._end(name, detail, idle)

    def _end(self, name: str, detail: str, idle: float) -> None:
        stuck = f"Stuck for {idle:.0f} s in {_in_words(name, detail)}"
        with (self.folder / "stall.txt").open("w", encoding="utf-8") as file:
            print(f"{stuck}.", file=file, flush=True)
            faulthandler.dump_traceback(file)
        _to_stderr(f"{stuck}; stacks are in {self.folder / 'stall.txt'}. Continue with --resume {self.folder}.")
        os._exit(self.EXIT_CODE)


def _in_words(name: str, detail: str) -> str:
    words = _WORDS.get(name, f"the stage '{name}'")
    return f"{words}: {detail}" if detail else words


def _to_stderr(text: str) -> None:
    print(f"mle-gym train: {text}", file=sys.stderr, flush=True)
