"""Multi-modal Gesture Recognition: which gestures does a recording show, in which order?"""

from __future__ import annotations

import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns, say
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.text import as_text, edit_distances


def _gestures(table: pd.DataFrame) -> list[list[int]]:
    """Return the sequences as lists of labels."""
    sequences = []
    for row, cell in enumerate(as_text(table["Sequence"])):
        try:
            sequences.append([int(label) for label in cell.split()])
        except ValueError:
            raise InvalidSubmission(
                f"Column 'Sequence', row {row + 1}: {say(table['Sequence'].iloc[row])}; "
                "expected labels from 1 to 20 with spaces between them."
            ) from None
    return sequences


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Levenshtein distances of all recordings together, divided by the number of gestures in the answers."""
    require_columns(submission, "Id", "Sequence")
    found, expected = same_order(submission, answers, "Id")
    guesses, truth = _gestures(submission), _gestures(answers)
    distances = edit_distances([truth[row] for row in expected], [guesses[row] for row in found])
    return float(distances.sum() / sum(map(len, truth)))
