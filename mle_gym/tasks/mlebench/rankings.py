"""Mean average precision of short ranked lists: the guesses of a cell, best first, separated by spaces."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, require_columns

__all__ = ["guesses", "map_one_truth", "mean_average_precision"]


def guesses(cells: Iterable[object]) -> list[list[str]]:
    """Split each cell at single spaces, an empty one into no guess; numbers count as their text.

    Two spaces in a row hold an empty guess between them, which takes a rank, as in MLE-bench.
    """
    return [[] if cell != cell or cell is None else str(cell).split(" ") for cell in cells]


def mean_average_precision(truths: Sequence[Collection[str]], ranked: Sequence[Sequence[str]], k: int) -> float:
    """MAP@k: mean over rows of the precision at each rank with a hit, over ``min(k, number of true items)``.

    A guess that stood at an earlier rank is no hit again, though it takes a rank. A row without true items counts 0.

    Args:
        truths: Different items of each row.
        ranked: Guesses of each row, best first; those after the first ``k`` are ignored.
        k: Length of the lists.
    """
    total = 0.0
    for truth, row in zip(truths, ranked, strict=True):
        first: dict[str, int] = {}
        for rank, guess in enumerate(row[:k], start=1):
            if guess in truth:
                first.setdefault(guess, rank)
        if first:
            total += sum(hits / rank for hits, rank in enumerate(first.values(), start=1)) / min(len(truth), k)
    return total / max(len(truths), 1)


def map_one_truth(submission: pd.DataFrame, answers: pd.DataFrame, id_column: str, target: str, k: int) -> float:
    """MAP@k where each row has one true item: 1 / rank of the first hit, 0 without one; rows matched by id.

    Raises:
        InvalidSubmission: A column or an id is missing, or an id stands twice.
    """
    require_columns(submission, id_column, target)
    rows = aligned(submission, answers, id_column)
    truths = [{str(value)} for value in answers[target]]
    return mean_average_precision(truths, guesses(rows[target]), k)
