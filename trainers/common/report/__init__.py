"""The report of a training run: one self-contained HTML page."""

from trainers.common.report.page import main, render_report, write_report

__all__ = ["main", "render_report", "write_report"]
