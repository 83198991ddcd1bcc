"""U.S. Patent Phrase to Phrase Matching: how similar two phrases are in the context of a class of patents."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.imitate import hex_id, words
from mle_gym.tasks.mlebench.regression import matched, prepare_table


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Pearson correlation; nan, which is valid, where a score is no finite number or all are the same."""
    from scipy.stats import pearsonr

    truth, predicted = matched(submission, answers, "id", "score", allow_nan=True, allow_inf=True)
    if len(truth) < 2:
        raise InvalidSubmission(f"The answers have {len(truth)} row, too few for a correlation.")
    if not np.isfinite(predicted).all() or np.ptp(predicted) == 0:
        return float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a nearly constant column is no reason to stop
        return float(pearsonr(truth, predicted).statistic)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the pairs."""
    prepare_table(raw, public, private, "id", ("score",), ("score",), 0)


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Phrases of made-up words; words mean the same if their first syllables do, and raters err now and then."""
    rows = {"tiny": 400, "small": 4000}[size]
    roots = words(rng, 80)
    endings = ("", "ta", "ren", "lis")
    anchors = [tuple(rng.choice(len(roots), rng.integers(1, 4), replace=False)) for _ in range(rows // 8)]
    classes = [f"{rng.choice(list('ABCDEFGH'))}{rng.integers(1, 100):02d}" for _ in range(30)]

    def phrase(meaning: tuple[int, ...]) -> str:
        return " ".join(roots[word] + str(rng.choice(endings)) for word in meaning)

    table = []
    for _ in range(rows):
        meaning = anchors[rng.integers(len(anchors))]
        kept = [word for word in meaning if rng.random() < rng.choice([0.1, 0.6, 0.9])]
        other = (*kept, *rng.choice(len(roots), rng.integers(not kept, 2), replace=False))
        likeness = len(set(meaning) & set(other)) / len(set(meaning) | set(other))
        score = np.clip(np.round(4 * likeness + rng.normal(0, 0.5)) / 4, 0, 1) + 0.0  # no -0.0
        table.append((hex_id(rng, 16), phrase(meaning), phrase(other), str(rng.choice(classes)), score))
    columns = ["id", "anchor", "target", "context", "score"]
    pd.DataFrame(table, columns=columns).to_csv(raw / "train.csv", index=False)
