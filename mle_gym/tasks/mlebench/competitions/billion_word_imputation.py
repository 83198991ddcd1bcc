"""Billion Word Imputation: which word is missing from a sentence, and where?"""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.imitate import words
from mle_gym.tasks.mlebench.text import mean_text_distance


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean Levenshtein distance in characters."""
    return mean_text_distance(submission, answers, "id", "sentence", text_only=True)


@contextmanager
def _zipped(archive: Path) -> Iterator[TextIO]:
    """Open the one member of a new archive, which has the archive's name, to write text of any size to."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        member = zipfile.ZipInfo(archive.stem)
        member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
        with file.open(member, "w", force_zip64=True) as data, io.TextIOWrapper(data, "utf-8", newline="\n") as text:
            yield text


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Take a word out of every hundredth sentence, neither its first nor its last; the others stay whole.

    The sample submission is the test file as it is. All is read and written line by line: the texts have 4 GB.
    """
    chance = np.random.RandomState(0)
    with ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(raw / "train_v2.txt.zip"))
        lines = io.TextIOWrapper(stack.enter_context(archive.open("train_v2.txt")), "utf-8")
        train = stack.enter_context(_zipped(public / "train_v2.txt.zip"))
        answers, sample = (
            stack.enter_context((private / name).open("w", encoding="utf-8", newline="\n"))
            for name in ("test.csv", "sample_submission.csv")
        )
        for table in (answers, sample):
            table.write('"id","sentence"\n')
        count = 0
        for line in lines:
            if chance.uniform() > 0.01 or len(line.split()) <= 2:
                train.write(line)
                continue
            sentence = line.strip().replace('"', '""')
            parts = sentence.split()
            gap = chance.randint(1, len(parts) - 1)
            answers.write(f'{count},"{sentence}"\n')
            sample.write(f'{count},"{" ".join(parts[:gap] + parts[gap + 1 :])}"\n')
            count += 1
    with (
        (private / "sample_submission.csv").open(encoding="utf-8") as test,
        _zipped(public / "test_v2.txt.zip") as copy,
    ):
        shutil.copyfileobj(test, copy)


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Sentences of a small grammar with made-up words, where each word goes with few others, so that gaps show."""
    vocabulary = words(rng, 420)
    things, doings, kinds = vocabulary[:200], vocabulary[200:320], vocabulary[320:]
    # Each word has a few usual neighbours.
    does = {thing: rng.choice(doings, size=3) for thing in things}
    takes = {doing: rng.choice(things, size=5) for doing in doings}
    looks = {thing: rng.choice(kinds, size=2) for thing in things}
    weights = 1.0 / np.arange(1, len(things) + 1)

    def phrase(thing: str) -> list[str]:
        kind = [str(rng.choice(looks[thing]))] if rng.random() < 0.5 else []
        return [str(rng.choice(["the", "a"], p=[0.7, 0.3])), *kind, thing]

    lines = []
    for _ in range({"tiny": 5000, "small": 40000}[size]):
        first = str(rng.choice(things, p=weights / weights.sum()))
        doing = str(rng.choice(does[first]))
        line = [*phrase(first), doing, *phrase(str(rng.choice(takes[doing])))]
        if rng.random() < 0.4:
            line += [str(rng.choice(["in", "with", "of"])), *phrase(str(rng.choice(takes[doing])))]
        if rng.random() < 0.1:
            line = ['"', *line, '"', ",", "he", "said"]
        lines.append(" ".join([*line, "."]) + "\n" if rng.random() < 0.999 else "yes .\n")
    with zipfile.ZipFile(raw / "train_v2.txt.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("train_v2.txt", "".join(lines))
