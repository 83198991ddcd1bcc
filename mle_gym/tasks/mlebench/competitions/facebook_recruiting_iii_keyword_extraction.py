"""Facebook Recruiting III - Keyword Extraction: which tags does a question have?"""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import extract, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import sentence, words
from mle_gym.tasks.mlebench.multilabel import micro_f1

TAGS = ["c#", "java", "php", "javascript", "android", "jquery", "c++", "python", "iphone", "asp.net", "mysql", "html"]
TAGS += [".net", "ios", "sql", "css", "linux", "ruby-on-rails", "windows", "c", "xml", "wpf", "ajax", "ruby", "regex"]


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """F1 over all pairs of question and tag; tags that no answer has are ignored."""
    return micro_f1(submission, answers, "Id", "Tags")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled questions; the sample submission has their texts in it too."""
    questions = read_csv(extract(raw / "Train.zip", raw) / "Train.csv", dtype={"Id": str, "Tags": str})
    train, test = split_rows(questions, test_size=0.1)
    del questions  # 7 GB
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.drop(columns="Tags"), public / "test.csv")
    write_csv(test.assign(Tags="javascript c# python php java"), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Questions of made-up words with code in them; each tag has words of its own, and often stands in the title."""
    vocabulary = words(rng, 1200)
    weights = 1.0 / np.arange(1, len(TAGS) + 1)
    own = {tag: vocabulary[at * 8 : at * 8 + 8] for at, tag in enumerate(TAGS)}
    plain = vocabulary[8 * len(TAGS) :]
    rows = []
    for number in range(1, {"tiny": 400, "small": 6000}[size] + 1):
        tags = rng.choice(TAGS, size=rng.integers(1, 5), replace=False, p=weights / weights.sum()).tolist()
        title = sentence(rng, plain, int(rng.integers(3, 8))).split()
        title += [tag for tag in tags if rng.random() < 0.4]
        body = sentence(rng, plain, int(rng.integers(10, 30))).split()
        body += [str(rng.choice(own[tag])) for tag in tags for _ in range(rng.integers(1, 4))]
        code = " ".join(rng.choice(own[tags[0]], size=3))
        text = f"<p>{' '.join(rng.permutation(body))}</p>\n\n<pre><code>{code};\n</code></pre>\n"
        rows.append((str(number), " ".join(rng.permutation(title)), text, " ".join(tags)))
    questions = pd.DataFrame(rows, columns=["Id", "Title", "Body", "Tags"])
    with zipfile.ZipFile(raw / "Train.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Train.csv", questions.to_csv(index=False, quoting=csv.QUOTE_ALL))
