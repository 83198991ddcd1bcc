"""Learning Agency Lab - Automated Essay Scoring 2.0: how good is a student's essay, from 1 to 6?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id, sentence, words
from mle_gym.tasks.mlebench.labels import quadratic_kappa, whole_numbers


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Cohen's kappa with quadratic weights."""
    require_columns(submission, "essay_id", "score")
    rows = aligned(submission, answers, "essay_id")
    whole_numbers(submission, "score")
    return quadratic_kappa(answers["score"].to_numpy(), whole_numbers(rows, "score"))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the scored essays."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    write_csv(train, public / "train.csv")
    write_csv(test, private / "answers.csv")
    write_csv(test.drop(columns="score"), public / "test.csv")
    guesses = np.random.RandomState(42).randint(1, 7, size=len(test))
    write_csv(test[["essay_id"]].assign(score=guesses), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Essays of made-up words; better ones are longer, have rarer words, more commas and fewer misspelt words."""
    vocabulary = words(rng, 800)
    rows = []
    for _ in range({"tiny": 300, "small": 2500}[size]):
        skill = float(rng.normal())
        length = int(np.exp(4.2 + 0.3 * skill + rng.normal(0.0, 0.15)))
        reach = int(np.clip(150 * np.exp(0.5 * skill), 60, len(vocabulary)))
        text = sentence(rng, vocabulary[:reach], length).split()
        for at in range(length):
            if rng.random() < 0.04 * np.exp(-0.8 * skill):
                text[at] = text[at][:-2] + text[at][-2:][::-1]
            if rng.random() < 0.05 * np.exp(0.5 * skill):
                text[at] += ","
            if rng.random() < 0.08 or at == length - 1:
                text[at] += "." if rng.random() < 0.9 else ".\n\n"
        score = int(np.digitize(skill + rng.normal(0.0, 0.4), (-1.2, -0.3, 0.5, 1.2, 1.9))) + 1
        rows.append((hex_id(rng, 7), " ".join(text), score))
    write_csv(pd.DataFrame(rows, columns=["essay_id", "full_text", "score"]), raw / "train.csv")
