"""One HTML page about a training run: self-contained, for light and dark screens, with a table under every picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
from tyro.conf import Positional

from mle_gym.commands.base import UserError, parse
from trainers.common.report.curves import Curves
from trainers.common.report.data import RunData, read_run
from trainers.common.report.format import is_number, nested, number, percent
from trainers.common.report.picture import render_picture
from trainers.common.report.sections import sections

__all__ = ["main", "render_report", "write_report"]


@dataclass(frozen=True)
class Options:
    """Write a report of one or more training runs: one self-contained HTML page for each."""

    runs: Positional[tuple[Path, ...]]
    """Run folders, finished, going or killed."""
    output: Path | None = None
    """The page, for a single run; report.html in the run's folder by default."""
    picture: Path | None = None
    """Write an SVG picture of a single run to this file as well."""


@dataclass(frozen=True)
class Tile:
    """One number at the top of the page."""

    name: str
    value: str
    detail: str = ""


def main(argv: Sequence[str]) -> int:
    """Write a report of one or more training runs."""
    options = parse(Options, argv, command="report")
    if not options.runs:
        raise UserError("Name at least one run folder, for example `mle-gym report runs/my-run`.")
    if options.output is not None and options.output.is_dir():
        raise UserError(f"--output {options.output} is a folder; give the path of a file.")
    if (options.output or options.picture) and len(options.runs) > 1:
        raise UserError("--output and --picture take one run, and there are several; leave them out.")
    for run in options.runs:
        print(write_report(run, options.output))
        if options.picture is not None:
            _write(options.picture, render_picture(read_run(run)))
            print(options.picture)
    return 0


def write_report(run: Path, output: Path | None = None) -> Path:
    """Write the page of a run and return its path.

    Args:
        run: The run's folder; the run may still be going, or have been killed.
        output: The page; ``report.html`` in the run's folder by default.

    Raises:
        UserError: There is no run in the folder.
    """
    html = render_report(read_run(run))
    path = output or run / "report.html"
    _write(path, html)
    return path


def render_report(run: RunData) -> str:
    """Return the page of a run as HTML."""
    curves = Curves(run.samples)
    ids = nested(run.config, "env", "ids") or sorted({str(sample.get("task", "")) for sample in run.samples})
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("trainers.common.report"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("report.html").render(
        title=f"Training on {', '.join(map(str, ids))}",
        lead=_lead(run),
        notes=run.notes,
        tiles=_tiles(run, curves),
        sections=sections(run, curves),
    )


def _write(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def _lead(run: RunData) -> str:
    """Return the sentence under the title."""
    facts = [f"{len(run.metrics)} updates on {len(run.samples)} programs"]
    for name, keys in (("seed", ("seed",)), ("admission", ("admission", "rule")), ("weights", ("weights", "rule"))):
        value = nested(run.config, *keys)
        if value is not None:
            facts.append(f"{name} {value}")
    return "; ".join(facts) + "."


def _tiles(run: RunData, curves: Curves) -> list[Tile]:
    """Return the numbers at the top."""
    tiles = []
    if curves.bins:
        tiles += [
            Tile("mean reward", number(curves.reward[-1]), f"at first {number(curves.reward[0])}"),
            Tile("scored", percent(curves.scored[-1]), f"at first {percent(curves.scored[0])}"),
        ]
    valid = [float(metrics["valid_share"]) for metrics in run.metrics if is_number(metrics.get("valid_share"))]
    if valid:
        part = max(1, len(valid) // 10)  # One batch alone is noisy.
        first, last = sum(valid[:part]) / part, sum(valid[-part:]) / part
        tiles.append(Tile("valid", percent(last), f"at first {percent(first)}"))
    seconds = [float(metrics["seconds"]) for metrics in run.metrics if is_number(metrics.get("seconds"))]
    if seconds:
        tiles.append(Tile("wall time", _duration(seconds[-1]), f"{len(run.metrics)} updates"))
    programs = sum(float(sample.get("duration") or 0.0) for sample in run.samples)
    tiles.append(Tile("inside programs", _duration(programs), f"{len(run.samples)} programs"))
    failed = sum(not sample.get("reward_valid", True) for sample in run.samples)
    tiles.append(Tile("masked", str(failed), "the machine failed, not the program"))
    return tiles


def _duration(seconds: float) -> str:
    """Return a time for people."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
