"""When a fit, a metric and a prediction are enough to count, whatever the library."""

from __future__ import annotations

from mle_gym.instrument.hooks.core import Recorder, rows
from mle_gym.instrument.hooks.events import Files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["Evidence"]

FEWEST_ROWS = 10
"""A fit on fewer rows is a toy ..."""
ROWS_SHARE = 0.1
"""... and so is one on less than this share of the train rows ..."""
ROWS_ENOUGH = 1000
"""... unless it has this many."""
FEWEST_LABELS = 5
"""A metric of fewer labels is no evaluation."""


class Evidence:
    """Decides on ``trained_model``, ``evaluated`` and ``predicted_test``.

    Predictions count after a fit, once their rows (or the sum of predictions in a row, not broken by a fit or a metric)
    are as many as a test file has, and a test file was opened. Where the number of test rows is unknown, any
    prediction counts after a test file was opened.
    """

    def __init__(self, recorder: Recorder, files: Files, context: Mapping[str, Any]) -> None:
        self.recorder = recorder
        self.files = files
        train_rows = context.get("train_rows")
        share = min(ROWS_ENOUGH, ROWS_SHARE * train_rows) if train_rows else 0
        self.rows_needed = min(max(FEWEST_ROWS, share), train_rows or FEWEST_ROWS)
        self.test_rows = frozenset(context.get("test_rows") or ())
        self.predicted_rows = 0
        self.predicted_before = {0}

    def fitted(self, count: int | None) -> bool:
        """Note a completed fit; return whether it counts."""
        self.forget()
        if count is None or count < self.rows_needed:
            return False
        self.recorder.reach("trained_model")
        return True

    def evaluated(self, labels: Any, guess: Any = None) -> None:
        """Note a completed metric; comparing a thing with itself is none."""
        self.forget()
        if labels is not None and labels is not guess and (rows(labels) or 0) >= FEWEST_LABELS:
            self.recorder.reach("evaluated")

    def predicted(self, count: int | None) -> None:
        """Note a completed prediction."""
        reached = self.recorder.reached
        if "predicted_test" in reached or "trained_model" not in reached or self.files.test_unread():
            return
        if not self.test_rows:
            self.recorder.reach("predicted_test")
        elif count is not None:
            self.predicted_rows += count
            if any(self.predicted_rows - whole in self.predicted_before for whole in self.test_rows):
                self.recorder.reach("predicted_test")
            self.predicted_before.add(self.predicted_rows)

    def forget(self) -> None:
        """Start to add up anew: what was predicted before a fit or a metric was not part of the test rows."""
        self.predicted_rows, self.predicted_before = 0, {0}
