"""The results of arXiv 2509.01684 that are public: 12 tasks of MLE-bench, agents of frontier models, and RL on 3B.

Means and standard errors over three runs. Sources: the paper's Table 2 (three scaffolds of GPT-4o, and RL) and those
eight rows of its Table 1 that secondary sources quote (base model, Claude 3.5 Sonnet, GPT-4o for 100 hours).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COLUMNS", "FAILED", "HEADLINES", "RL", "SCAFFOLDS", "TASKS", "UNKNOWN", "Cell", "PublishedTask"]


@dataclass(frozen=True)
class Cell:
    """One published result."""

    mean: float | None
    """None where there is none."""
    error: float | None = None
    """Standard error of the mean; None where it is not known."""
    note: str = ""
    """Why there is none."""


FAILED = Cell(None, note="N/A")
"""The agent had no valid submission, or none was reported: N/A or NaN in the paper."""
UNKNOWN = Cell(None, note=".")
"""The paper has a number, but no source that was read quotes it."""


@dataclass(frozen=True)
class PublishedTask:
    """One row of the table."""

    name: str
    higher_is_better: bool
    cells: tuple[Cell, ...]
    """One for each of :data:`COLUMNS`."""


RL = "Qwen2.5-3B RL"
SCAFFOLDS = ("GPT-4o AIDE 24h", "GPT-4o OpenHands", "GPT-4o MLAB")
"""The columns that the paper's best scaffold per task is taken from."""
HEADLINES = {"Claude-3.5-S AIDE": 0.22, "GPT-4o AIDE 24h": 0.24, "best scaffold": 0.177}
"""What the paper says RL gains over these columns; how it treats missing cells is not stated."""
COLUMNS = ("Qwen2.5-3B AIDE", "Claude-3.5-S AIDE", "GPT-4o AIDE 100h", *SCAFFOLDS, RL)


def _row(name: str, higher: bool, *cells: Cell | float | tuple[float, float]) -> PublishedTask:
    made = [
        Cell(*cell) if isinstance(cell, tuple) else cell if isinstance(cell, Cell) else Cell(cell) for cell in cells
    ]
    return PublishedTask(name, higher, tuple(made))


# fmt: off
TASKS = (
    _row("detecting-insults-in-social-commentary", True,
         0.870, FAILED, FAILED, FAILED, (0.867, 0.017), (0.749, 0.039), (0.895, 0.001)),
    _row("learning-agency-lab-automated-essay-scoring-2", True,
         UNKNOWN, UNKNOWN, UNKNOWN, (0.720, 0.031), (0.681, 0.010), (0.533, 0.080), (0.746, 0.002)),
    _row("random-acts-of-pizza", True,
         0.589, 0.627, 0.638, (0.645, 0.009), (0.591, 0.048), (0.520, 0.013), (0.663, 0.011)),
    _row("tweet-sentiment-extraction", True,
         0.027, 0.448, 0.283, (0.294, 0.032), (0.415, 0.008), (0.158, 0.057), (0.596, 0.002)),
    _row("tabular-playground-series-may-2022", True,
         0.787, 0.743, 0.883, (0.884, 0.012), (0.882, 0.030), (0.711, 0.050), (0.913, 0.000)),
    _row("tabular-playground-series-dec-2021", True,
         UNKNOWN, UNKNOWN, UNKNOWN, (0.957, 0.002), (0.957, 0.000), (0.828, 0.118), (0.951, 0.000)),
    _row("us-patent-phrase-to-phrase-matching", True,
         UNKNOWN, UNKNOWN, UNKNOWN, (0.756, 0.019), (0.366, 0.039), FAILED, (0.527, 0.003)),
    _row("plant-pathology-2020-fgvc7", True,
         UNKNOWN, UNKNOWN, UNKNOWN, (0.980, 0.002), (0.680, 0.113), (0.735, 0.052), (0.970, 0.004)),
    _row("leaf-classification", False,
         0.884, 0.436, 0.846, (0.656, 0.070), (0.902, 0.018), (4.383, 2.270), (0.124, 0.000)),
    _row("nomad2018-predict-transparent-conductors", False,
         0.178, 0.083, 0.072, (0.144, 0.031), (0.183, 0.120), (0.294, 0.126), (0.059, 0.000)),
    _row("spooky-author-identification", False,
         0.596, 0.701, 0.546, (0.576, 0.071), (0.582, 0.020), (0.992, 0.463), (0.404, 0.011)),
    _row("lmsys-chatbot-arena", False,
         11.48, 2.211, 1.451, (1.323, 0.147), (1.131, 0.019), (10.324, 4.509), (1.081, 0.002)),
)
# fmt: on
"""The 12 tasks on which the base model handed in at least one valid submission in 128 samples."""
