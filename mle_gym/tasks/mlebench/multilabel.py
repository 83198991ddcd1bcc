"""Sets of labels: a cell holds labels separated by spaces."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, require_columns, say, text_cells

__all__ = ["label_sets", "micro_f1"]


def label_sets(cells: Sequence[str]) -> list[set[str]]:
    """Split each cell at whitespace; an empty cell is an empty set."""
    return [set(cell.split()) for cell in cells]


def micro_f1(submission: pd.DataFrame, answers: pd.DataFrame, id_column: str, target: str) -> float:
    """F1 score of all (row, label) pairs together, rows matched by id.

    Labels that occur in no row of the answers are ignored, so they are no false positives; as in MLE-bench. Where
    nothing is predicted the score is 0.

    Raises:
        InvalidSubmission: A column or an id is missing, an id stands twice, or the labels are read as numbers.
    """
    require_columns(submission, id_column, target)
    rows = aligned(submission, answers, id_column)
    cells = submission[target]
    if pd.api.types.is_numeric_dtype(cells.dtype) and (cells.notna().any() or not len(cells)):
        row = int(cells.notna().to_numpy().argmax())
        raise InvalidSubmission(
            f"Column {target!r}, row {row + 1}: {say(cells.iloc[row])}; expected text in the column, but it is read as "
            "numbers because no row has more than one label or a label with letters."
        )
    text_cells(submission, target, empty=True)
    truth = label_sets(text_cells(answers.astype({target: object}), target, empty=True))
    found = label_sets(text_cells(rows, target, empty=True))
    known = set().union(*truth)
    hits = sum(len(a & b) for a, b in zip(truth, found, strict=True))
    pairs = sum(map(len, truth)) + sum(len(labels & known) for labels in found)
    return 2.0 * hits / pairs if pairs else 0.0
