"""The sections of a report: figures and tables, each left out where the run has not recorded what it needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mle_gym.instrument.base import MILESTONES
from trainers.common.comparison import comparison
from trainers.common.report.curves import Curves
from trainers.common.report.data import RunData
from trainers.common.report.format import as_float, is_number, nested, number, percent
from trainers.common.report.parts import Figure, Section, Table
from trainers.common.report.plots import bar_plot, line_plot, stacked_plot
from trainers.common.report.selection import selection

__all__ = ["sections"]

_VERSION = "policy version (updates made when the program was written)"
_TABLE_ROWS = 12


def sections(run: RunData, curves: Curves) -> list[Section]:
    """Return what a page says about a run, in reading order."""
    found = [_before_after(run), _best(run)]
    if curves.bins:
        found += [_learning(run, curves), _outcomes(curves), _time(curves), selection(run), _models(curves)]
    found.append(_configuration(run))
    return [section for section in found if section is not None]


def _learning(run: RunData, curves: Curves) -> Section | None:
    """Return reward and validity over the run."""
    shares = {"scored": curves.scored}
    figures = [
        Figure(
            "Reward",
            line_plot(
                curves.versions,
                {"mean reward": curves.reward},
                title="Mean reward by policy version",
                xlabel=_VERSION,
                ylabel="mean reward",
            ),
            "Mean over the programs that one version of the policy wrote, or a few neighbouring ones.",
            _curve_table("Mean reward", curves.versions, {"reward": curves.reward}, number),
        ),
        Figure(
            "Scored submissions",
            line_plot(
                curves.versions,
                shares,
                title="Share of scored programs by policy version",
                xlabel=_VERSION,
                ylabel="share of programs",
                share=True,
            ),
            "Share of programs whose submission was valid and got a score.",
            _curve_table("Share of scored programs", curves.versions, shares, percent),
        ),
    ]
    updates = [float(m["update"]) for m in run.metrics if is_number(m.get("update"))]
    valid = {"valid": [as_float(m.get("valid_share")) for m in run.metrics if is_number(m.get("update"))]}
    if any(not math.isnan(value) for value in valid["valid"]):
        figures.append(
            Figure(
                "Valid programs in the batches",
                line_plot(
                    updates,
                    valid,
                    title="Share of valid programs by update",
                    xlabel="update",
                    ylabel="share of a batch",
                    share=True,
                ),
                "Valid: a model was fitted and the score beats the sample submission's.",
                _curve_table("Share of valid programs", updates, valid, percent),
            )
        )
    return Section("Learning", figures=figures)


def _outcomes(curves: Curves) -> Section | None:
    """Return how programs ended and how far they came."""
    first, last = _ends(curves.milestones)
    ends = {"first tenth": first, "last tenth": last}
    names = [name.replace("_", " ") for name in MILESTONES]
    total = sum(curves.outcome_counts.values())
    return Section(
        "How programs ended",
        figures=[
            Figure(
                "Outcomes",
                stacked_plot(
                    curves.versions,
                    curves.outcomes,
                    title="Outcomes by policy version",
                    xlabel=_VERSION,
                    ylabel="share of programs",
                ),
                "Every completion counts, also those that were masked.",
                Table(
                    "Programs by outcome over the whole run",
                    ("outcome", "programs", "share"),
                    [
                        (name.replace("_", " "), str(count), percent(count / total))
                        for name, count in curves.outcome_counts.items()
                    ],
                ),
            ),
            Figure(
                "Milestones reached",
                bar_plot(
                    names,
                    ends,
                    title="Share of programs that reached each milestone",
                    xlabel="",
                    ylabel="share of programs",
                ),
                "Of the programs of the first and of the last tenth of the curve above.",
                Table(
                    "Share of programs that reached each milestone",
                    ("milestone", *ends),
                    [(name, percent(a), percent(b)) for name, a, b in zip(names, first, last, strict=True)],
                ),
            ),
        ],
    )


def _time(curves: Curves) -> Section | None:
    """Return durations."""
    seconds = {"median": curves.duration(0.5), "90th percentile": curves.duration(0.9)}
    figures = []
    if any(value > 0 for value in seconds["median"]):
        figures.append(
            Figure(
                "Duration of programs",
                line_plot(
                    curves.versions,
                    seconds,
                    title="Seconds a program ran, by policy version",
                    xlabel=_VERSION,
                    ylabel="seconds",
                    log=True,
                ),
                "Only programs that ran; waiting and set-up do not count.",
                _curve_table("Seconds a program ran", curves.versions, seconds, number),
            )
        )
    return Section("Time", figures=figures) if figures else None


def _models(curves: Curves) -> Section | None:
    """Return which models the programs use."""
    figures = [
        Figure(
            "Model families",
            stacked_plot(
                curves.versions,
                curves.families,
                title="Model families by policy version",
                xlabel=_VERSION,
                ylabel="share of programs",
            ),
            "The last model that a program constructs, read from its source; programs that fail count too.",
            _curve_table("Share of programs by model family", curves.versions, curves.families, percent),
        )
    ]
    if any(not math.isnan(value) for value in curves.copied):
        copied = {"no model fitted": curves.copied}
        figures.append(
            Figure(
                "Scored without a model",
                line_plot(
                    curves.versions,
                    copied,
                    title="Share of scored programs that fitted no model",
                    xlabel=_VERSION,
                    ylabel="share of scored programs",
                    share=True,
                ),
                "Such a program copies the sample submission or writes constants: a sign of reward hacking.",
                _curve_table("Share of scored programs that fitted no model", curves.versions, copied, percent),
            )
        )
    return Section("Models", figures=figures)


def _best(run: RunData) -> Section | None:
    """Return the best program of each task."""
    if not run.best:
        return None
    rows = []
    for best in run.best:
        final = nested(run.summary, "tasks", best.task) or {}
        public, private = best.record.get("score"), final.get("best_private_score")
        version, duration = str(best.record.get("version", "")), number(best.record.get("duration"))
        rows.append((best.task, number(public), number(private), f"{duration} s", version))
    columns = ("task", "public score", "private score", "duration", "policy version")
    caption = "Chosen by the public score. The private score comes from rows that training never saw."
    code = "\n\n".join(f"# {best.task}\n{best.program.rstrip()}" for best in run.best)
    return Section("Best programs", tables=[Table(caption, columns, rows)], code=code)


def _before_after(run: RunData) -> Section | None:
    """Return what the start policy and the last one wrote, and the evaluation of the trained one."""
    tables = []
    tasks = nested(run.summary, "tasks") or {}
    rows = []
    for task, facts in tasks.items():
        shares = [percent(as_float(facts.get(f"valid_share_{end}"))) for end in ("first", "last")]
        rewards = [number(facts.get(f"mean_reward_{end}")) for end in ("first", "last")]
        rows.append((task, *shares, *rewards))
    if rows:
        columns = ("task", "valid, first", "valid, last", "reward, first", "reward, last")
        caption = (
            "Programs of the start policy, and as many of the last ones. Valid: a model was fitted, and the score "
        )
        tables.append(Table(caption + "beats the sample submission's.", columns, rows))
    before, after = (nested(run.evaluation, "tables", name) or {} for name in ("before", "after"))
    for task in after:
        caption = f"{task}: fresh programs of the start policy and of the trained one, at temperature 1 and greedy"
        tables.append(Table(caption, ("", "before", "after"), comparison(before, after, task)))
    return Section("Before and after", tables=tables) if tables else None


def _configuration(run: RunData) -> Section | None:
    """Return the configuration as a table."""
    rows = [(key, str(value)) for key, value in _flatten(run.config)]
    return Section("Configuration", tables=[Table("config.toml", ("key", "value"), rows)]) if rows else None


def _curve_table(
    caption: str, x: Sequence[float], series: Mapping[str, Sequence[float]], show: Callable[[float], str]
) -> Table:
    """Return about a dozen points of the curves."""
    step = max(1, math.ceil(len(x) / _TABLE_ROWS))
    chosen = sorted({*range(0, len(x), step), len(x) - 1}) if x else []
    rows = [(number(x[at]), *(show(values[at]) for values in series.values())) for at in chosen]
    return Table(caption, ("version", *series), rows)


def _ends(curves: Mapping[str, Sequence[float]]) -> tuple[list[float], list[float]]:
    """Return the mean of each curve's first and last tenth."""

    def mean(values: Sequence[float]) -> float:
        known = [value for value in values if not math.isnan(value)]
        return sum(known) / len(known) if known else math.nan

    part = {name: max(1, len(values) // 10) for name, values in curves.items()}
    first = [mean(values[: part[name]]) for name, values in curves.items()]
    return first, [mean(values[-part[name] :]) for name, values in curves.items()]


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Yield dotted keys and values of nested tables."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
