"""The part of a report on asynchrony: who is trained, what the loss makes of them, and how fast the run could be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from trainers.common.report.data import RunData
from trainers.common.report.format import as_float, is_number, number, percent
from trainers.common.report.parts import Figure, Section, Table
from trainers.common.report.plots import bar_plot, line_plot

__all__ = ["selection"]

_DECILE = "decile of duration, fastest first"
_RANKS = [str(rank) for rank in range(1, 11)]
_ROWS = 12


def selection(run: RunData) -> Section | None:
    """Return what the audit and the clock say; None where the run has recorded neither."""
    deciles = run.audit.get("deciles") or (run.metrics[-1].get("audit") if run.metrics else None) or {}
    figures = [*_shares(deciles), *_treatment(deciles), *_lag(run), *_speed(run)]
    tables = [*_versions(run.audit.get("table") or []), *_limits(run)]
    if not figures and not tables:
        return None
    return Section("Asynchrony", figures=figures, tables=tables)


def _shares(deciles: Mapping[str, Any]) -> list[Figure]:
    """Return the shares of each decile of duration, from launch to training."""
    names = _names(deciles)
    if not names:
        return []
    order = ("launched", "finished", "trained", "weighted", "dropped")
    shares = {name: values for name in order if (values := _ten(deciles, name)) and (name != "dropped" or any(values))}
    if not {"launched", "trained"} <= set(shares):
        return []
    return [
        Figure(
            "Launched and trained, by duration",
            bar_plot(
                _RANKS,
                shares,
                title="Share of launched and trained programs in each decile of duration",
                xlabel=_DECILE,
                ylabel="share of programs",
            ),
            "Equal bars: training sees what the policy wrote. Shorter bars for trained on the right: slow programs are "
            "starved. Finished: ran to their own end. Weighted: trained, counted by their weights.",
            _decile_table("Share of launched and trained programs", names, shares, percent),
        )
    ]


def _treatment(deciles: Mapping[str, Any]) -> list[Figure]:
    """Return how the loss treats each decile of duration."""
    names = _names(deciles)
    found = {
        label: values
        for label, key in (("clipped tokens", "clip_share"), ("effective tokens", "ess_share"))
        if (values := _ten(deciles, key))
    }
    if not names or not found or not any(value > 0 for values in found.values() for value in values):
        return []
    lags = {"mean lag, updates": _ten(deciles, "lag") or [math.nan] * 10}
    rows = _decile_table("How the loss treats trained programs", names, found, percent)
    joined = [(*row, number(lag)) for row, lag in zip(rows.rows, lags["mean lag, updates"], strict=True)]
    return [
        Figure(
            "Clipped and effective, by duration",
            bar_plot(
                _RANKS,
                {label: [0.0 if math.isnan(value) else value for value in values] for label, values in found.items()},
                title="Share of clipped tokens and effective share of tokens in each decile of duration",
                xlabel=_DECILE,
                ylabel="share of tokens",
            ),
            "A slow program is old when it is trained, so its importance ratios are far from 1. More clipped or fewer "
            "effective tokens on the right: it counts less, although it is there.",
            Table(rows.caption, (*rows.columns, *lags), joined),
        )
    ]


def _lag(run: RunData) -> list[Figure]:
    """Return how old the trained samples were."""
    series = {"mean": "lag_mean", "95th percentile": "lag_p95", "largest": "lag_max"}
    return _over_updates(
        run,
        series,
        title="Lag",
        heading="Age of the trained samples, by update",
        ylabel="updates",
        caption="Updates made between writing a program and training on it.",
        show=number,
    )


def _speed(run: RunData) -> list[Figure]:
    """Return which stage was busy, and the share of the limit that was reached."""
    series = {
        "executors": "busy_executors",
        "generator": "busy_generator",
        "learner": "busy_learner",
        "of the limit": "limit_share",
    }
    return _over_updates(
        run,
        series,
        title="Busy",
        heading="Share of the time that each stage was busy, by update",
        ylabel="share of the time",
        caption="Of the limit: samples per second so far over what the slowest stage alone would allow. Above 100 %: "
        "slow programs were dropped, or programs that ended in this update had run in earlier ones.",
        show=percent,
    )


def _over_updates(
    run: RunData, series: Mapping[str, str], *, title: str, heading: str, ylabel: str, caption: str, show: Any
) -> list[Figure]:
    rows = [metrics for metrics in run.metrics if is_number(metrics.get("update"))]
    lines = {label: [as_float(row.get(key)) for row in rows] for label, key in series.items()}
    lines = {label: values for label, values in lines.items() if not all(map(math.isnan, values))}
    if not rows or not lines:
        return []
    updates = [float(row["update"]) for row in rows]
    step = max(1, math.ceil(len(rows) / _ROWS))
    chosen = sorted({*range(0, len(rows), step), len(rows) - 1})
    table = [(number(updates[at]), *(show(values[at]) for values in lines.values())) for at in chosen]
    plot = line_plot(updates, lines, title=heading, xlabel="update", ylabel=ylabel)
    return [Figure(title, plot, caption, Table(heading, ("update", *lines), table))]


def _limits(run: RunData) -> list[Table]:
    """Return the rate reached beside the limit of each stage."""
    last = run.metrics[-1] if run.metrics else {}
    names = {
        "reached": "rate_samples",
        "executors: slots over mean duration": "limit_executors",
        "generator alone": "limit_generator",
        "learner alone": "limit_learner",
    }
    rows = [(label, number(last.get(key))) for label, key in names.items() if is_number(last.get(key))]
    if len(rows) < 2:
        return []
    share = percent(as_float(last.get("limit_share")))
    return [Table(f"Samples per second over the run, and the limit of each stage ({share} reached)", ("", "1/s"), rows)]


def _versions(table: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return what became of the programs of each version, the slower half beside the faster one."""
    rows = []
    step = max(1, math.ceil(len(table) / _ROWS))
    for at in range(0, len(table), step):
        part = table[at : at + step]

        def count(stage: str, half: slice, part: Sequence[Mapping[str, Any]] = part) -> int:
            return sum(sum(row[stage][half]) for row in part)

        cells = []
        for half in (slice(0, 5), slice(5, 10)):
            launched = count("launched", half)
            for stage in ("finished", "trained", "dropped"):
                cells.append(percent(count(stage, half) / launched if launched else math.nan))
        first, last = part[0]["first"], part[-1]["last"]
        rows.append((str(first) if first == last else f"{first} to {last}", *cells))
    if not rows:
        return []
    columns = (
        "version",
        *(f"{half}: {stage}" for half in ("fast", "slow") for stage in ("finished", "trained", "dropped")),
    )
    return [Table("Of the launched programs of each version, the faster and the slower half", columns, rows)]


def _decile_table(caption: str, names: Sequence[str], series: Mapping[str, Sequence[float]], show: Any) -> Table:
    rows = [(name, *map(show, values)) for name, *values in zip(names, *series.values(), strict=True)]
    return Table(caption, ("duration", *series), rows)


def _names(deciles: Mapping[str, Any]) -> list[str]:
    edges = deciles.get("edges") or []
    return [f"{number(low)} to {number(high)} s" for low, high in pairwise(edges)] if len(edges) == 11 else []


def _ten(deciles: Mapping[str, Any], name: str) -> list[float]:
    values = deciles.get(name) or []
    return [as_float(value) for value in values] if len(values) == 10 else []
