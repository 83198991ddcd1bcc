"""Tweet Sentiment Extraction: which words of a tweet carry its sentiment?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id, sentence, words
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.text import as_text, word_overlap


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean Jaccard index of the words; not defined for an empty guess at an empty answer."""
    require_columns(submission, "textID", "selected_text")
    found, expected = same_order(submission, answers, "textID")
    cells, truth = as_text(submission["selected_text"], ""), as_text(answers["selected_text"], "")
    overlap = word_overlap([cells[row] for row in found], [truth[row] for row in expected])
    if np.isnan(overlap).any():
        row = int(found[np.isnan(overlap)].min())
        raise InvalidSubmission(
            f"Column 'selected_text', row {row + 1}: {say(submission['selected_text'].iloc[row])}; "
            "expected a word, as the metric is not defined where neither side has one."
        )
    return float(overlap.mean())


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled tweets."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="selected_text"), public / "test.csv")
    write_csv(test[["textID"]].assign(selected_text=""), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Tweets of made-up words; a few glad or sad ones stand together, and mostly they are what annotators marked."""
    vocabulary = words(rng, 900)
    moods = {"positive": vocabulary[:40], "negative": vocabulary[40:80], "neutral": []}
    plain = vocabulary[80:]
    rows = []
    for _ in range({"tiny": 300, "small": 6000}[size]):
        sentiment = str(rng.choice(list(moods), p=[0.31, 0.28, 0.41]))
        tweet = sentence(rng, plain, int(rng.integers(4, 18))).split()
        if rng.random() < 0.3:
            tweet.insert(0, f"@{rng.choice(plain)}")
        start, stop = 0, len(tweet)
        if moods[sentiment]:
            marked = rng.choice(moods[sentiment], size=rng.integers(1, 4)).tolist()
            start = int(rng.integers(0, len(tweet) + 1))
            tweet[start:start] = marked
            # Annotators differ: some take the next word too, some the whole tweet.
            stop = min(start + len(marked) + int(rng.random() < 0.3), len(tweet))
            if rng.random() < 0.1:
                start, stop = 0, len(tweet)
        text = " ".join(tweet) + str(rng.choice(["", "", "!", "..."]))
        rows.append((hex_id(rng, 10), f" {text}", " ".join(tweet[start:stop]), sentiment))
    write_csv(pd.DataFrame(rows, columns=["textID", "text", "selected_text", "sentiment"]), raw / "train.csv")
