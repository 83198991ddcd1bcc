"""TensorFlow 2.0 Question Answering: which part of a Wikipedia page answers a question, at length and in short?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns, require_rows, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import split_rows, write_csv
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.text import as_text

Answer = tuple[int, int] | str
KINDS = ("long", "short")


def _span(tokens: dict[str, Any]) -> tuple[int, int]:
    return int(tokens["start_token"]), int(tokens["end_token"])


def read_answers(path: Path) -> pd.DataFrame:
    """Read the right answers only; the pages themselves are large.

    Returns:
        Columns ``example_id``, ``long`` and ``short``, the latter two with sets of spans, ``YES`` or ``NO``.
    """
    rows = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            example = json.loads(line)
            annotation = example["annotations"][0]
            long, answer = _span(annotation["long_answer"]), annotation["yes_no_answer"]
            short: set[Answer] = {_span(tokens) for tokens in annotation["short_answers"]}
            rows.append(
                {
                    "example_id": str(example["example_id"]),
                    "long": set() if long[0] == -1 else {long},
                    "short": short | ({answer} if answer != "NONE" else set()),
                }
            )
    return pd.DataFrame(rows, columns=["example_id", *KINDS])


def part(submission: pd.DataFrame, answers: pd.DataFrame, rows: NDArray[np.bool_]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Cut out some examples; each has two rows in a submission."""
    chosen = answers[rows].reset_index(drop=True)
    ids = [f"{example}_{kind}" for example in chosen["example_id"] for kind in KINDS]
    return submission[submission["example_id"].isin(ids)].reset_index(drop=True), chosen


def _parse(cell: str) -> Answer:
    """Return the span, ``YES``, ``NO`` or "".

    Raises:
        ValueError: It is none of these.
    """
    text = cell.strip()
    if text.count(":") == 1:
        start, end = text.split(":")
        return int(start), int(end)
    if text not in ("", "YES", "NO"):
        raise ValueError
    return text


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of rows with a right answer, or with none where there is none."""
    require_rows(submission, 2 * len(answers))
    require_columns(submission, "example_id", "PredictionString")
    wanted = pd.DataFrame({"example_id": [f"{example}_{kind}" for example in answers["example_id"] for kind in KINDS]})
    found, _ = same_order(submission, wanted, "example_id")
    right = [valid for both in zip(*(answers[kind] for kind in KINDS), strict=True) for valid in both]
    guesses: list[Answer] = []
    for row, cell in enumerate(as_text(submission["PredictionString"], "")):
        try:
            guesses.append(_parse(cell))
        except ValueError:
            raise InvalidSubmission(
                f"Column 'PredictionString', row {row + 1}: {say(cell)}; "
                "expected a span of tokens as start:end, YES, NO or nothing."
            ) from None
    hits = [guesses[row] in valid if guesses[row] else not valid for row, valid in zip(found, right, strict=True)]
    return float(np.mean(hits))


def _gold(example: str, annotation: dict[str, Any]) -> list[tuple[str, str]]:
    """Return an example's two rows of the perfect submission; of several short answers it has the first."""
    short = annotation["yes_no_answer"]
    if short == "NONE":
        short = "{}:{}".format(*_span(annotation["short_answers"][0])) if annotation["short_answers"] else ""
    long = "{}:{}".format(*_span(annotation["long_answer"])) if annotation["long_answer"]["start_token"] != -1 else ""
    return [(f"{example}_short", short), (f"{example}_long", long)]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled examples of every thousand lines."""
    shown = ["example_id", "question_text", "document_text", "long_answer_candidates"]
    gold: list[tuple[str, str]] = []
    with (
        pd.read_json(raw / "simplified-nq-train.jsonl", orient="records", lines=True, chunksize=1000) as chunks,
        (public / "simplified-nq-train.jsonl").open("w", encoding="utf-8") as train_file,
        (public / "simplified-nq-test.jsonl").open("w", encoding="utf-8") as test_file,
        (private / "test.jsonl").open("w", encoding="utf-8") as answers_file,
    ):
        for chunk in chunks:
            train, test = split_rows(chunk.assign(example_id=chunk["example_id"].astype(str)), test_size=0.1)
            for rows, file in ((train, train_file), (test, answers_file), (test[shown], test_file)):
                file.write(rows.to_json(orient="records", lines=True))
            for example, annotations in zip(test["example_id"], test["annotations"], strict=True):
                gold += _gold(example, annotations[0])
    perfect = pd.DataFrame(gold, columns=["example_id", "PredictionString"])
    write_csv(perfect, private / "gold_submission.csv")
    write_csv(perfect.assign(PredictionString=""), public / "sample_submission.csv")
