"""What competitions on text share: cells as text, overlap of words, edit distance, answers token by token."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.checks import require_columns, text_cells
from mle_gym.tasks.mlebench.metrics import same_order

__all__ = ["as_text", "edit_distances", "mean_text_distance", "token_accuracy", "word_overlap"]


def as_text(column: pd.Series[Any], empty: str = "nan") -> list[str]:
    """Return cells as Python prints them, which is how MLE-bench takes numbers for text.

    Args:
        column: Any column that pandas has read, shape ``(rows,)``.
        empty: What an empty cell becomes.
    """
    missing = column.isna().tolist()
    return [empty if gone else str(cell) for cell, gone in zip(column.tolist(), missing, strict=True)]


def edit_distances(first: Sequence[Sequence[Hashable]], second: Sequence[Sequence[Hashable]]) -> NDArray[np.int64]:
    """Levenshtein distance of each pair of texts, or of each pair of lists; shape ``(pairs,)``."""
    from rapidfuzz.distance import Levenshtein

    pairs = zip(first, second, strict=True)
    return np.fromiter((Levenshtein.distance(one, other) for one, other in pairs), np.int64, len(first))


def mean_text_distance(
    submission: pd.DataFrame, answers: pd.DataFrame, id_column: str, target: str, *, text_only: bool = False
) -> float:
    """Mean Levenshtein distance, in characters, of a column from the answers' one, rows matched by id.

    Numbers count as the text that Python prints for them, an empty cell as ``nan``; ``text_only`` refuses both.

    Raises:
        InvalidSubmission: A column or an id is missing, an id stands twice, or a cell holds no text.
    """
    require_columns(submission, id_column, target)
    found, expected = same_order(submission, answers, id_column)
    texts = text_cells(submission, target) if text_only else as_text(submission[target])
    truth = as_text(answers[target])
    return float(edit_distances([truth[row] for row in expected], [texts[row] for row in found]).mean())


def word_overlap(first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
    """Jaccard index of the sets of lower-cased words of each pair of texts, nan where both have none.

    Returns:
        Shape ``(pairs,)``, in [0, 1].
    """
    overlap = np.full(len(first), np.nan)
    for row, (one, other) in enumerate(zip(first, second, strict=True)):
        mine, theirs = set(one.lower().split()), set(other.lower().split())
        if mine or theirs:
            overlap[row] = len(mine & theirs) / len(mine | theirs)
    return overlap


def token_accuracy(submission: pd.DataFrame, answers: pd.DataFrame, id_column: str, target: str) -> float:
    """Share of rows whose text equals the answer, rows matched by id.

    All is compared as the text that Python prints for it, so every word that pandas reads as missing (``NA``, ``null``,
    ``nan``, an empty cell) equals every other one.

    Raises:
        InvalidSubmission: A column or an id is missing, or an id stands twice.
    """
    require_columns(submission, id_column, target)
    found, expected = same_order(submission, answers, id_column)
    texts = np.array(as_text(submission[target]), dtype=object)[found]
    return float((texts == np.array(as_text(answers[target]), dtype=object)[expected]).mean())
