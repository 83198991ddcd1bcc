"""1st and Future - Player Contact Detection: which players of American football touch each other or the ground?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import numbers, require_columns
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.metrics import same_order


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Matthews correlation of hard labels."""
    require_columns(submission, "contact_id", "contact")
    order, _ = same_order(submission, answers, "contact_id")
    labels = numbers(submission, "contact")
    odd = (np.trunc(labels) != labels) | (np.abs(labels) >= 2.0**63)
    if odd.any():
        row = int(np.flatnonzero(odd)[0])
        raise InvalidSubmission(
            f"Column 'contact', row {row + 1}: {labels[row]:g}; expected a whole number, 0 or 1, and no probability."
        )
    return _matthews(answers["contact"].to_numpy(), labels[order])


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the plays."""
    plays = read_csv(raw / "train_labels.csv", usecols=["game_play"])["game_play"].unique()
    _, test = split_rows(plays.tolist(), test_size=0.1)
    for name in ("labels", "baseline_helmets", "player_tracking", "video_metadata"):
        table = read_csv(raw / f"train_{name}.csv")
        is_test = table["game_play"].isin(test)
        write_csv(table[~is_test], public / f"train_{name}.csv")
        if name != "labels":
            write_csv(table[is_test], public / f"test_{name}.csv")
            continue
        write_csv(table[is_test], private / "test.csv")
        write_csv(table.loc[is_test, ["contact_id"]].assign(contact=0), public / "sample_submission.csv")
        for play in plays:
            folder = public / ("test" if play in test else "train")
            files = [f"{play}_{view}.mp4" for view in ("All29", "Endzone", "Sideline")]
            copy_files((raw / "train" / file, folder / file) for file in files)


def _matthews(truth: NDArray[np.int64], found: NDArray[np.float64]) -> float:
    """Matthews correlation for any number of labels, from counts alone.

    scikit-learn's needs a table of labels x labels, which a file full of different numbers would blow up.
    """
    labels, codes = np.unique(np.concatenate([truth.astype(np.float64), found]), return_inverse=True)
    true_counts, counts = (
        np.bincount(part, minlength=len(labels)).astype(np.float64) for part in np.split(codes, [len(truth)])
    )
    rows = float(len(truth))
    right = float((truth == found).sum())
    spread = (rows**2 - counts @ counts) * (rows**2 - true_counts @ true_counts)
    return float((right * rows - true_counts @ counts) / np.sqrt(spread)) if spread else 0.0
