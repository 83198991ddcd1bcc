"""Movie Review Sentiment Analysis: how positive is a phrase, from 0 to 4?"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import extract, read_csv, split_rows, write_csv, zip_files
from mle_gym.tasks.mlebench.imitate import sentence, words
from mle_gym.tasks.mlebench.metrics import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of phrases with the right label."""
    return accuracy(submission, answers, "PhraseId", "Sentiment")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 30 % of the labelled phrases."""
    train, test = split_rows(read_csv(extract(raw / "train.tsv.zip", raw) / "train.tsv", sep="\t"), test_size=0.3)
    for name, rows in (("train.tsv", train), ("test.tsv", test.drop(columns="Sentiment"))):
        place = raw / "prepared" / name
        write_csv(rows, place, sep="\t")
        zip_files(public / f"{name}.zip", [(place, name)], compression=zipfile.ZIP_DEFLATED)
    write_csv(test, private / "answers.csv")
    write_csv(test[["PhraseId"]].assign(Sentiment=2), public / "sampleSubmission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Reviews of made-up words, cut into phrases; some words are good or bad, and one turns the next one round."""
    vocabulary = words(rng, 700)
    weight = dict(zip(vocabulary[:160], rng.normal(0.0, 1.4, 160).tolist(), strict=True))
    turn, *plain = vocabulary[160:]
    rows: list[tuple[int, int, str, int]] = []
    for review in range(1, {"tiny": 60, "small": 1500}[size] + 1):
        text = sentence(rng, plain, int(rng.integers(6, 16))).split()
        for word in rng.choice(list(weight), size=rng.integers(1, 5)):
            text.insert(int(rng.integers(len(text) + 1)), str(word))
            if rng.random() < 0.15:
                text.insert(text.index(word), turn)
        cuts = [(0, len(text))]
        for start, stop in cuts:  # grows: each phrase is halved, down to single words, as a parser's tree
            if stop - start > 1 and len(cuts) < 14:
                middle = int(rng.integers(start + 1, stop))
                cuts += [(start, middle), (middle, stop)]
        for start, stop in cuts:
            mood = sum(
                weight.get(word, 0.0) * (-0.8 if at > start and text[at - 1] == turn else 1.0)
                for at, word in enumerate(text[start:stop], start=start)
            )
            label = int(np.digitize(mood + rng.normal(0.0, 0.35), (-1.8, -0.6, 0.6, 1.8)))
            rows.append((len(rows) + 1, review, " ".join(text[start:stop]), label))
    phrases = pd.DataFrame(rows, columns=["PhraseId", "SentenceId", "Phrase", "Sentiment"])
    with zipfile.ZipFile(raw / "train.tsv.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("train.tsv", phrases.to_csv(index=False, sep="\t"))
