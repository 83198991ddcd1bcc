"""What the user sees while a run is going."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

__all__ = ["LineProgress", "LiveProgress", "Progress", "make_progress"]


class Progress(Protocol):
    """Hears about every update and every change of stage."""

    def status(self, text: str) -> None:
        """What is going on now."""
        ...

    def update(self, metrics: Mapping[str, Any]) -> None:
        """An update is finished."""
        ...

    def say(self, text: str) -> None:
        """A line worth keeping."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None
    ) -> None: ...


_COLUMNS = {
    "update": "update",
    "reward": "reward_mean",
    "valid": "valid_share",
    "best": "best_public_score",
    "program s": "duration_mean",
    "lag": "lag_mean",
    "kl": "approx_kl",
    "clip": "clip_share",
    "executors": "busy_executors",
    "learner": "busy_learner",
    "seconds": "seconds",
}
_SHARES = frozenset({"valid", "clip", "executors", "learner"})


class LineProgress:
    """One plain line per update, for logs."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stdout, soft_wrap=True, highlight=False)

    def status(self, text: str) -> None:
        """Too much for a log."""

    def update(self, metrics: Mapping[str, Any]) -> None:
        """Print the main numbers."""
        self.say("  ".join(f"{name} {_cell(name, metrics.get(key))}" for name, key in _COLUMNS.items()))

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, markup=False)
        self._console.file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        pass


class LiveProgress:
    """A table of the last updates that redraws itself, for terminals."""

    ROWS = 12

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._rows: list[list[str]] = []
        self._status = ""
        self._live = Live(console=console, refresh_per_second=4, transient=False)
        self._last = 0.0

    def status(self, text: str) -> None:
        """Show under the table; redrawn at most four times a second."""
        self._status = text
        if time.monotonic() - self._last > 0.25:
            self._draw()

    def update(self, metrics: Mapping[str, Any]) -> None:
        """Add a row."""
        self._rows = [*self._rows, [_cell(name, metrics.get(key)) for name, key in _COLUMNS.items()]][-self.ROWS :]
        self._draw()

    def say(self, text: str) -> None:
        """Print above the table."""
        self._console.print(text, markup=False)

    def _draw(self) -> None:
        self._last = time.monotonic()
        table = Table(title=self._title, caption=self._status, caption_justify="left")
        for name in _COLUMNS:
            table.add_column(name, justify="right")
        for row in self._rows:
            table.add_row(*row)
        self._live.update(table)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._draw()
        self._live.__exit__(kind, value, tb)


def make_progress(title: str) -> Progress:
    """A live table on a terminal, else plain lines."""
    console = Console()
    return LiveProgress(console, title) if console.is_terminal else LineProgress()


def _cell(name: str, value: Any) -> str:
    if not isinstance(value, int | float) or value != value:
        return "-"
    if isinstance(value, int):
        return str(value)
    return f"{value:.0%}" if name in _SHARES else f"{value:.3g}"
