"""Google QUEST Q&A Labeling: thirty human judgements of a question and its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import sentence, words
from mle_gym.tasks.mlebench.regression import sorted_alike, sorted_part

TARGETS = (
    *("question_asker_intent_understanding", "question_body_critical", "question_conversational"),
    *("question_expect_short_answer", "question_fact_seeking", "question_has_commonly_accepted_answer"),
    *("question_interestingness_others", "question_interestingness_self", "question_multi_intent"),
    *("question_not_really_a_question", "question_opinion_seeking", "question_type_choice", "question_type_compare"),
    *("question_type_consequence", "question_type_definition", "question_type_entity", "question_type_instructions"),
    *("question_type_procedure", "question_type_reason_explanation", "question_type_spelling"),
    *("question_well_written", "answer_helpful", "answer_level_of_information", "answer_plausible"),
    *("answer_relevance", "answer_satisfaction", "answer_type_instructions", "answer_type_procedure"),
    *("answer_type_reason_explanation", "answer_well_written"),
)

LENGTHS = ((4, 12), (20, 60), (20, 70))
"""Fewest and most words of a title, a question and an answer in stand-in data."""


def part(submission: pd.DataFrame, answers: pd.DataFrame, rows: NDArray[np.bool_]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Cut answers and submission, rows lined up as in :func:`grade`."""
    return sorted_part(submission, answers, rows, "qa_id")


def _ranks(column: pd.Series[Any]) -> NDArray[np.float64]:
    """Ranks, ties shared; a column of text ranks in alphabetical order."""
    from scipy.stats import rankdata

    if pd.api.types.is_numeric_dtype(column.dtype):
        return np.asarray(rankdata(column.to_numpy(dtype=np.float64)))
    cells = column.tolist()
    text = [isinstance(cell, str) for cell in cells]
    if not all(text):
        row = text.index(not text[0])
        raise InvalidSubmission(
            f"Column {column.name!r}, row {row + 1}: {say(cells[row])} cannot be ranked beside {say(cells[0])}; "
            "expected a number."
        )
    return np.asarray(rankdata(np.unique(np.array(cells, dtype=object), return_inverse=True)[1]))


def _spearman(truth: pd.Series[Any], predicted: pd.Series[Any]) -> float:
    """Rank correlation; nan where a cell is empty or a column constant."""
    if predicted.isna().any():
        return float("nan")
    ranks = _ranks(truth), _ranks(predicted)
    if any(np.ptp(values) == 0 for values in ranks):
        return float("nan")
    return float(np.corrcoef(*ranks)[0, 1])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean of the thirty rank correlations; one constant or incomplete column makes it nan, which is valid."""
    require_columns(submission, "qa_id", *TARGETS)
    if len(submission.columns) != len(TARGETS) + 1:
        other = next(str(c) for c in submission.columns if c not in ("qa_id", *TARGETS))
        raise InvalidSubmission(f"The submission has a column {say(other)}; expected qa_id and the 30 targets only.")
    for target in TARGETS:
        if not submission[target].isna().any():
            _ranks(submission[target])  # here the first bad row is the file's
    rows = sorted_alike(submission, answers, "qa_id")
    return float(np.mean([_spearman(answers[target], rows[target]) for target in TARGETS]))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the questions, among them one about spelling; the sample submission counts up from 0 to 1."""
    train, test = (part.reset_index(drop=True) for part in split_rows(read_csv(raw / "train.csv"), test_size=0.1))
    rare = "question_type_spelling"
    if test[rare].nunique() == 1 and (train[rare] > 0).any():
        row = int(np.flatnonzero(train[rare] > 0)[0])
        given, taken = train.loc[row].copy(), test.loc[0].copy()
        train.loc[row], test.loc[0] = taken, given
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns=list(TARGETS)), public / "test.csv")
    write_csv(test[["qa_id", *TARGETS]], private / "test.csv")
    rising = np.linspace(0, 1, len(test))
    write_csv(test[["qa_id"]].assign(**dict.fromkeys(TARGETS, rising)), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Made-up words; how often a judgement's own words are used, and the category, move the three raters."""
    rows = {"tiny": 450, "small": 3000}[size]
    vocabulary = words(rng, 300)
    topics = {"LIFE_ARTS": "photo", "CULTURE": "english", "SCIENCE": "physics", "TECHNOLOGY": "superuser"}
    category = rng.choice([*topics, "STACKOVERFLOW"], rows)
    taste = rng.choice(len(vocabulary), (len(TARGETS), 25))
    leaning = {name: rng.normal(0, 0.5, len(TARGETS)) for name in (*topics, "STACKOVERFLOW")}
    texts = [[sentence(rng, vocabulary, int(n)) for n in rng.integers(low, high, rows)] for low, high in LENGTHS]
    level = np.linspace(1.0, -1.0, len(TARGETS))
    judged = np.empty((rows, len(TARGETS)))
    places = {word: number for number, word in enumerate(vocabulary)}
    for row in range(rows):
        counts = [np.zeros(len(vocabulary)) for _ in range(2)]
        for side, parts in enumerate(((texts[0][row], texts[1][row]), (texts[2][row],))):
            np.add.at(counts[side], [places[word] for word in " ".join(parts).split()], 1)
        for number, target in enumerate(TARGETS):
            used = counts[target.startswith("answer")][taste[number]].sum()
            opinion = level[number] + 0.25 * used - 0.8 + leaning[category[row]][number]
            judged[row, number] = np.mean(rng.logistic(opinion, 1.0, 3) > 0)
    people = [f"{name.capitalize()} {number}" for number, name in enumerate(vocabulary)]
    host = [f"{topics.get(name, 'stackoverflow')}.stackexchange.com" for name in category]
    asked, replied = rng.integers(0, len(people), (2, rows))
    table = pd.DataFrame(
        {
            "qa_id": np.sort(rng.choice(np.arange(2 * rows), rows, replace=False)),
            "question_title": texts[0],
            "question_body": texts[1],
            "question_user_name": [people[user] for user in asked],
            "question_user_page": [f"https://{place}/users/{user}" for place, user in zip(host, asked, strict=True)],
            "answer": texts[2],
            "answer_user_name": [people[user] for user in replied],
            "answer_user_page": [f"https://{place}/users/{user}" for place, user in zip(host, replied, strict=True)],
            "url": [f"http://{place}/questions/{number}" for number, place in enumerate(host, start=1)],
            "category": category,
            "host": host,
        }
    )
    table[list(TARGETS)] = judged.round(6)
    table.to_csv(raw / "train.csv", index=False)
