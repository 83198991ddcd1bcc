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
from mle_gym.tasks.mlebench.imitate import sentence, words
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.text import as_text

FACTS = {
    "founded": ("when was the {} founded", "was founded in"),
    "built": ("who built the {}", "was built by"),
    "named": ("what is the {} named after", "was named after"),
    "owned": ("who does the {} belong to", "was owned by"),
}

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


def _article(rng: np.random.Generator, vocabulary: list[str]) -> tuple[list[str], list[dict[str, Any]], dict[str, Any]]:
    """Return a page's tokens, its paragraphs, and one of its facts: subject, kind, paragraph and span."""
    tokens = ["<H1>", *sentence(rng, vocabulary, 2).split(), "</H1>"]
    paragraphs: list[dict[str, Any]] = []
    facts = []
    for _ in range(int(rng.integers(3, 7))):
        subject, kind = str(rng.choice(vocabulary[50:])), str(rng.choice(list(FACTS)))
        value = [str(rng.integers(1700, 2020))] if kind == "founded" else rng.choice(vocabulary[50:], size=2).tolist()
        start = len(tokens)
        tokens += ["<P>", *sentence(rng, vocabulary, int(rng.integers(3, 12))).split(), ".", "The", subject]
        tokens += FACTS[kind][1].split()
        begin = len(tokens)
        tokens += [*value, ".", *sentence(rng, vocabulary, int(rng.integers(3, 12))).split(), ".", "</P>"]
        facts.append(
            {"subject": subject, "kind": kind, "paragraph": len(paragraphs), "span": (begin, begin + len(value))}
        )
        paragraphs.append({"start_token": start, "top_level": True, "end_token": len(tokens)})
    return tokens, paragraphs, facts[rng.integers(len(facts))]


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Pages of facts about made-up things and a question on one of them; a third of the questions have no answer."""
    vocabulary = words(rng, 500)
    with (raw / "simplified-nq-train.jsonl").open("w", encoding="utf-8") as file:
        for _ in range({"tiny": 240, "small": 2400}[size]):
            tokens, paragraphs, fact = _article(rng, vocabulary)
            known, closed = rng.random() < 0.65, rng.random() < 0.06
            asked = fact["subject"] if known or rng.random() < 0.5 else str(rng.choice(vocabulary[50:]))
            kind = fact["kind"] if known else "owned"
            long = {"start_token": -1, "candidate_index": -1, "end_token": -1}
            if known:
                long = {**paragraphs[fact["paragraph"]], "candidate_index": fact["paragraph"]}
                del long["top_level"]
            start, end = fact["span"]
            short = [{"start_token": start, "end_token": end}] if known and not closed and rng.random() < 0.7 else []
            question = f"was the {asked} {FACTS[kind][1].split()[1]}" if closed else FACTS[kind][0].format(asked)
            annotation = {
                "yes_no_answer": str(rng.choice(["YES", "NO"], p=[0.7, 0.3])) if known and closed else "NONE",
                "long_answer": long,
                "short_answers": short,
                "annotation_id": int(rng.integers(1, 2**62)),
            }
            example = {
                "document_text": " ".join(tokens),
                "long_answer_candidates": paragraphs,
                "question_text": question,
                "annotations": [annotation],
                "document_url": f"https://example.org/wiki?title={tokens[1]}&oldid={rng.integers(10**8, 10**9)}",
                "example_id": int(rng.integers(-(2**62), 2**62)),
            }
            file.write(json.dumps(example) + "\n")
