"""LMSYS Chatbot Arena: which of two answers of chat models did a human prefer?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import sentence, words
from mle_gym.tasks.mlebench.probabilities import class_log_loss

OUTCOMES = ("winner_model_a", "winner_model_b", "winner_tie")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Log loss over the three outcomes."""
    return class_log_loss(submission, answers, "id", OUTCOMES, digits=6)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the battles."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    write_csv(train, public / "train.csv")
    write_csv(test, private / "answers.csv")
    write_csv(test[["id", "prompt", "response_a", "response_b"]], public / "test.csv")
    write_csv(test[["id"]].assign(**dict.fromkeys(OUTCOMES, 0.3333333333333333)), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Battles of made-up models; good ones use other words, and people like long answers that take up the question."""
    rows = {"tiny": 400, "small": 3000}[size]
    vocabulary = words(rng, 400)
    skills = np.sort(rng.normal(0, 1, 12))
    models = [f"{name}-{rng.integers(2, 99)}b" for name in words(rng, len(skills))]
    battles = []
    for _ in range(rows):
        question = sentence(rng, vocabulary, int(rng.integers(4, 30)))
        pair = rng.choice(len(skills), 2, replace=False)
        answers = [_answer(rng, vocabulary, question, skills[model]) for model in pair]
        lengths = [len(text) for text in answers]
        lead = 1.2 * np.diff(skills[pair])[0] + 0.8 * np.log(lengths[1] / lengths[0]) + rng.logistic(0, 0.6)
        winner = 2 if abs(lead) < 0.6 else int(lead > 0)
        flags = [int(winner == outcome) for outcome in range(len(OUTCOMES))]
        texts = [json.dumps([text]) for text in (question.capitalize() + "?", *answers)]
        battles.append((int(rng.integers(30_000, 2**32)), *(models[model] for model in pair), *texts, *flags))
    columns = ["id", "model_a", "model_b", "prompt", "response_a", "response_b", *OUTCOMES]
    table = pd.DataFrame(battles, columns=columns).drop_duplicates("id").sort_values("id")
    write_csv(table, raw / "train.csv")


def _answer(rng: np.random.Generator, vocabulary: list[str], question: str, skill: float) -> str:
    """A better model writes more, repeats more of the question and uses rarer words."""
    length = int(np.exp(rng.normal(3.2 + 0.2 * skill, 0.5))) + 3
    rare = vocabulary[20:] if rng.random() < 1 / (1 + np.exp(-1.5 * skill)) else vocabulary[:150]
    echoed = [word for word in question.split() if rng.random() < 0.3 + 0.1 * skill]
    return " ".join([*echoed, *sentence(rng, rare, length).split()]).capitalize() + ".\n"
