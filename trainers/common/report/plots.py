"""Plots of a report: matplotlib figures as inline SVG whose colours follow the page's light or dark theme."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from itertools import count

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import AutoLocator, LogLocator, MaxNLocator, NullFormatter, PercentFormatter, StrMethodFormatter

__all__ = ["MAX_SERIES", "bar_plot", "line_plot", "stacked_plot"]

# Placeholder colours: each becomes the CSS variable of the same rank, so that one SVG serves both themes.
_SERIES = ("#010001", "#020002", "#030003", "#040004", "#050005", "#060006", "#070007")
_INK, _GRID = "#0a000a", "#0b000b"
_VARIABLES = {colour: f"var(--series-{rank})" for rank, colour in enumerate(_SERIES, start=1)}
_VARIABLES |= {_INK: "var(--ink)", _GRID: "var(--grid)"}
MAX_SERIES = len(_SERIES)
"""Series one plot can tell apart by colour."""

_STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo")
_ids = count()


def line_plot(
    x: Sequence[float],
    series: Mapping[str, Sequence[float]],
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    share: bool = False,
    log: bool = False,
    bands: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    whole: bool = True,
) -> str:
    """Draw one line for each series.

    Args:
        x: Shared abscissa.
        series: Label -> values; nan leaves a gap.
        title: Accessible name of the picture.
        xlabel: Label of the abscissa.
        ylabel: Label of the ordinate, with its unit.
        share: The values are shares in [0, 1].
        log: Logarithmic ordinate.
        bands: Label -> lowest and highest value at each place, shaded behind the line; nan leaves a gap.
        whole: The abscissa counts: its ticks are whole numbers.
    """
    figure, axes = _axes(xlabel, ylabel, share=share)
    if not whole:
        axes.xaxis.set_major_locator(AutoLocator())
    for rank, (label, values) in enumerate(series.items()):
        marker = "o" if len(x) < 3 else None
        if bands and label in bands:
            low, high = zip(*bands[label], strict=True)
            axes.fill_between(x, low, high, facecolor=_SERIES[rank], alpha=0.15, linewidth=0)
        axes.plot(x, values, color=_SERIES[rank], linestyle=_STYLES[rank], linewidth=1.8, marker=marker, label=label)
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    return _svg(figure, axes, title, legend=len(series) > 1)


def stacked_plot(
    x: Sequence[float], series: Mapping[str, Sequence[float]], *, title: str, xlabel: str, ylabel: str
) -> str:
    """Draw shares that add up to one as a stack; hatches keep the parts apart without colour."""
    figure, axes = _axes(xlabel, ylabel, share=True)
    bottom = [0.0] * len(x)
    for rank, (label, values) in enumerate(series.items()):
        top = [low + value for low, value in zip(bottom, values, strict=True)]
        axes.fill_between(
            x,
            bottom,
            top,
            facecolor=_SERIES[rank],
            edgecolor=_INK,
            linewidth=0.3,
            hatch=_HATCHES[rank],
            label=label,
            step="mid",
        )
        bottom = top
    return _svg(figure, axes, title, legend=True)


def bar_plot(
    categories: Sequence[str], series: Mapping[str, Sequence[float]], *, title: str, xlabel: str, ylabel: str
) -> str:
    """Draw groups of bars, one group for each category and one bar for each series; the values are shares."""
    figure, axes = _axes(xlabel, ylabel, share=True)
    width = 0.8 / max(len(series), 1)
    for rank, (label, values) in enumerate(series.items()):
        offset = (rank - (len(series) - 1) / 2) * width
        axes.bar(
            [position + offset for position in range(len(categories))],
            values,
            width * 0.94,
            label=label,
            facecolor=_SERIES[rank],
            edgecolor=_INK,
            linewidth=0.3,
            hatch=_HATCHES[rank],
        )
    highest = max((value for values in series.values() for value in values), default=1.0)
    axes.set_ylim(0, min(1.0, 1.15 * highest) if highest > 0 else 1.0)
    rotate = max((len(name) for name in categories), default=0) > 9
    axes.set_xticks(
        range(len(categories)),
        categories,
        rotation=25 if rotate else 0,
        ha="right" if rotate else "center",
        fontsize="small",
    )
    return _svg(figure, axes, title, legend=len(series) > 1)


def _axes(xlabel: str, ylabel: str, *, share: bool) -> tuple[Figure, Axes]:
    """Return an empty figure in the report's style."""
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    figure.set_facecolor("none")
    axes = figure.add_subplot(facecolor="none")
    axes.set_xlabel(xlabel, color=_INK)
    axes.set_ylabel(ylabel, color=_INK)
    axes.tick_params(which="both", colors=_INK, labelcolor=_INK)
    axes.grid(visible=True, axis="y", color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set_color(_GRID)
    if share:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_ylim(0, 1)
    return figure, axes


def _svg(figure: Figure, axes: Axes, title: str, *, legend: bool) -> str:
    """Return the figure as an SVG element that can stand in a page beside others."""
    if legend:
        figure.legend(
            *axes.get_legend_handles_labels(),
            loc="outside upper left",
            ncols=3,
            frameon=False,
            labelcolor=_INK,
            fontsize="small",
        )
    prefix = f"plot{next(_ids)}-"
    buffer = io.StringIO()
    # "none" keeps text as text: selectable, searchable, and in the page's font. The salt makes the file reproducible.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "mle_gym", "hatch.linewidth": 0.25}):
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    # A style element inside an inline SVG would style the whole page.
    text = re.sub(r"<(metadata|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    # Ids are unique within one SVG only; the page holds several.
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{prefix}", text)
    text = re.sub(r"font-family: [^;\"]*", "font-family: var(--font)", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, variable)
    head, rest = text.split(">", 1)
    # Without a size of its own the SVG fills the width it is given.
    head = re.sub(r' (width|height)="[^"]*"', "", head) + f' role="img" aria-labelledby="{prefix}title"'
    return f'{head}><title id="{prefix}title">{_escape(title)}</title>{rest}'


def _escape(text: str) -> str:
    """Return ``text`` safe inside an SVG element."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
