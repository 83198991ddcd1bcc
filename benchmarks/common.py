"""What every benchmark shares: options, the header, the JSON file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import tyro
from rich.console import Console
from rich.table import Table

from mle_gym.commands.base import plain
from mle_gym.machine import Machine

__all__ = ["BenchmarkOptions", "parse", "print_header", "print_table", "save"]

T = TypeVar("T")


@dataclass(frozen=True)
class BenchmarkOptions:
    """Options of every benchmark."""

    json: Path | None = None
    """Write every number to this file."""
    quick: bool = False
    """Few repetitions: checks that the benchmark runs, gives rough numbers."""
    seed: int = 0
    """Seed of all that is random."""


def parse(options: type[T], argv: Sequence[str] | None) -> T:
    """Parse a benchmark's arguments into its options dataclass."""
    return tyro.cli(options, args=argv, config=(tyro.conf.FlagCreatePairsOff,))


def print_header(title: str, options: BenchmarkOptions) -> None:
    """Print what the numbers below depend on."""
    machine = Machine.here()
    versions = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    out = _console()
    out.print(title, style="bold")
    out.print(f"{machine.system}, {machine.processor}, {machine.cores} cores, {machine.memory_gb:.1f} GiB")
    out.print(f"GPU: {', '.join(machine.gpus) or 'none'}; Python {machine.python}; {versions}")
    out.print(f"seed {options.seed}{', quick' if options.quick else ''}, load {os.getloadavg()[0]:.1f} at the start\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str = "") -> None:
    """Print rows under columns; all but the first column are right-aligned."""
    table = Table(title=title or None, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left")
    for row in rows:
        table.add_row(*map(str, row))
    _console().print(table)


def save(path: Path | None, options: BenchmarkOptions, results: Mapping[str, Any]) -> None:
    """Write the results with the machine's facts and the options, where a path is given."""
    if path is None:
        return
    document = plain({"machine": asdict(Machine.here()), "options": asdict(options), "results": dict(results)})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _console() -> Console:
    """Return a console that wraps nothing in a pipe and marks nothing up by itself."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    return console if console.is_terminal else Console(highlight=False, markup=False, width=160)
