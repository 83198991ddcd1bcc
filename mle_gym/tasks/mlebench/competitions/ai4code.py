"""Google AI4Code: in which order did the cells of a notebook stand?"""

from __future__ import annotations

from bisect import bisect

import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns, say
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.text import as_text


def _inversions(ranks: list[int]) -> int:
    """Count pairs that stand the wrong way round, by insertion: notebooks are short."""
    before: list[int] = []
    count = 0
    for rank in ranks:
        at = bisect(before, rank)
        count += len(before) - at
        before.insert(at, rank)
    return count


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Kendall's tau over all pairs of cells of all notebooks together: 1 - 4 * inversions / sum of n (n - 1)."""
    require_columns(submission, "id", "cell_order")
    found, expected = same_order(submission, answers, "id")
    guesses, truth = as_text(submission["cell_order"]), as_text(answers["cell_order"])
    inversions = most = 0
    wrong: list[tuple[int, str]] = []
    for row, position in zip(found.tolist(), expected.tolist(), strict=True):
        guess, cells = guesses[row].split(), truth[position].split()
        place = {cell: rank for rank, cell in enumerate(guess)}
        if len(guess) != len(cells):
            wrong.append((row, f"{len(guess)} cell(s); expected the {len(cells)} of this notebook, each once"))
        elif missing := next((cell for cell in cells if cell not in place), None):
            wrong.append((row, f"{say(missing)} is missing; expected every cell of this notebook once"))
        else:
            inversions += _inversions([place[cell] for cell in cells])
            most += len(cells) * (len(cells) - 1)
    if wrong:
        row, problem = min(wrong)
        raise InvalidSubmission(f"Column 'cell_order', row {row + 1}: {problem}.")
    return 1 - 4 * inversions / most
