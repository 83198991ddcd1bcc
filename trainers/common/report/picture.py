"""A run as one standalone SVG picture, for a README: it follows the reader's light or dark theme like the page does."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from importlib.resources import files

from trainers.common.report.curves import Curves
from trainers.common.report.data import RunData
from trainers.common.report.plots import line_plot, stacked_plot

__all__ = ["render_picture", "standalone"]

_WIDTH, _HEIGHT, _HEAD = 460, 230, 34
_XLABEL = "policy version"
_STYLE = "rect.page { fill: var(--page); } text.head { font: 600 15px var(--font); fill: var(--ink); }"


def render_picture(run: RunData) -> str:
    """Return reward, outcomes and model families over the run as one SVG file.

    Args:
        run: With at least one sample.
    """
    curves = Curves(run.samples)
    x = curves.versions
    panels = {
        "Mean reward": line_plot(x, {"r": curves.reward}, title="Mean reward", xlabel=_XLABEL, ylabel="reward"),
        "How programs ended": stacked_plot(
            x, curves.outcomes, title="Outcomes", xlabel=_XLABEL, ylabel="share of programs"
        ),
        "Models they use": stacked_plot(
            x, curves.families, title="Model families", xlabel=_XLABEL, ylabel="share of programs"
        ),
    }
    return standalone(panels)


def standalone(panels: Mapping[str, str]) -> str:
    """Return plots side by side as one SVG file that needs no page around it.

    Args:
        panels: Title -> plot, from :mod:`trainers.common.report.plots`.
    """
    theme = files("trainers.common.report").joinpath("templates", "theme.css").read_text(encoding="utf-8")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'viewBox="0 0 {_WIDTH * len(panels)} {_HEIGHT + _HEAD}">',
        f"<title>{html.escape(', '.join(panels))}</title>",
        f"<style>{theme}{_STYLE}</style>",
        '<rect class="page" width="100%" height="100%"/>',
    ]
    for number, (title, svg) in enumerate(panels.items()):
        left = number * _WIDTH
        place = f'<svg x="{left}" y="{_HEAD}" width="{_WIDTH}" height="{_HEIGHT}"'
        parts.append(f'<text class="head" x="{left + 16}" y="22">{html.escape(title)}</text>')
        parts.append(re.sub(r"^<svg", place, svg))
    return "\n".join([*parts, "</svg>", ""])
