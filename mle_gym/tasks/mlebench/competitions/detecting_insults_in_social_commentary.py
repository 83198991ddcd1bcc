"""Detecting Insults in Social Commentary: is a comment an insult to somebody in the conversation?"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, write_csv
from mle_gym.tasks.mlebench.imitate import sentence, words
from mle_gym.tasks.mlebench.metrics import binary_auc


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Area under the ROC curve; a row is known by its comment."""
    return binary_auc(submission, answers, "Comment", "Insult")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Take Kaggle's first test set, whose labels were published, without them."""
    shutil.copyfile(raw / "train.csv", public / "train.csv")
    shutil.copyfile(raw / "test_with_solutions.csv", private / "test.csv")
    gold = read_csv(private / "test.csv")[["Insult", "Date", "Comment"]]
    write_csv(gold, private / "gold_submission.csv")
    write_csv(gold[["Date", "Comment"]], public / "test.csv")
    write_csv(gold.assign(Insult=0), public / "sample_submission_null.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Comments in made-up words; a few words are rude, and insults hold more of them."""
    train, test = {"tiny": (160, 60), "small": (2000, 600)}[size]
    rows = train + test
    vocabulary = words(rng, 400)
    rude, common = vocabulary[:40], vocabulary[40:]
    labels = (rng.random(rows) < 0.27).astype(int)
    dates, comments = [], []
    for row, label in enumerate(labels):
        text = sentence(rng, common, int(rng.integers(5, 40))).split()
        for _ in range(rng.poisson(1.8 if label else 0.35)):
            text.insert(int(rng.integers(len(text) + 1)), str(rng.choice(rude)))
        if rng.random() < 0.3:
            text.insert(len(text) // 2, "\\\\n\\\\n")
        # Comments name their rows, so each must be there once; Kaggle's are wrapped in quotes of their own.
        comments.append(f'"{" ".join(text)} {common[row % len(common)]}{row}."')
        day, second = int(rng.integers(1, 29)), int(rng.integers(86400))
        clock = f"{second // 3600:02d}{second // 60 % 60:02d}{second % 60:02d}"
        dates.append(f"201206{day:02d}{clock}Z" if rng.random() < 0.82 else None)
    frame = pd.DataFrame({"Insult": labels, "Date": dates, "Comment": comments})
    frame[:train].to_csv(raw / "train.csv", index=False)
    usage = np.where(rng.random(test) < 0.5, "PublicTest", "PrivateTest")
    frame[train:].assign(Usage=usage).to_csv(raw / "test_with_solutions.csv", index=False)
    frame[train:].drop(columns="Insult").reset_index(names="id").to_csv(raw / "test.csv", index=False)
