"""chaii - Hindi and Tamil Question Answering: which words of a text answer a question?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import require_columns, text_cells
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.text import as_text, word_overlap

LETTERS = {"hindi": ("कगचजटडतदनपबमरलवसह", "ािीुूेो"), "tamil": ("கசடதநபமயரலவறன", "ாிீுூெேைொோ")}
FACTS = {
    "hindi": {
        "place": ("{name} की राजधानी {value} है ।", "{name} की राजधानी क्या है?"),
        "person": ("{name} के संस्थापक {value} थे ।", "{name} के संस्थापक कौन थे?"),
        "year": ("{name} की स्थापना वर्ष {value} में हुई ।", "{name} की स्थापना कब हुई?"),
        "river": ("{name} के पास {value} नदी बहती है ।", "{name} के पास कौन सी नदी बहती है?"),
    },
    "tamil": {
        "place": ("{name} நாட்டின் தலைநகரம் {value} ஆகும்.", "{name} நாட்டின் தலைநகரம் எது?"),
        "person": ("{name} நகரை நிறுவியவர் {value} ஆவார்.", "{name} நகரை நிறுவியவர் யார்?"),
        "year": ("{name} நகரம் {value} ஆண்டு நிறுவப்பட்டது.", "{name} நகரம் எப்போது நிறுவப்பட்டது?"),
        "river": ("{name} அருகே {value} ஆறு ஓடுகிறது.", "{name} அருகே எந்த ஆறு ஓடுகிறது?"),
    },
}


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean Jaccard index of the words; 0 for an empty guess at an empty answer."""
    require_columns(submission, "id", "PredictionString")
    found, expected = same_order(submission, answers, "id")
    cells, truth = text_cells(submission, "PredictionString", empty=True), as_text(answers["PredictionString"], "")
    overlap = word_overlap([cells[row] for row in found], [truth[row] for row in expected])
    return float(np.nan_to_num(overlap).mean())


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the labelled questions."""
    train, test = split_rows(read_csv(raw / "train.csv"), test_size=0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns=["answer_start", "answer_text"]), public / "test.csv")
    answers = test[["id", "answer_text"]].rename(columns={"answer_text": "PredictionString"})
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(PredictionString="dummy text"), public / "sample_submission.csv")


def _word(rng: np.random.Generator, letters: tuple[str, str]) -> str:
    """Return a made-up word of consonants, each with a vowel sign."""
    consonants, vowels = letters
    return "".join(rng.choice(list(consonants)) + rng.choice(list(vowels)) for _ in range(rng.integers(2, 5)))


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Texts of facts about made-up places and people in both languages, and a question about one of the facts."""
    rows = []
    for _ in range({"tiny": 260, "small": 1600}[size]):
        language = "hindi" if rng.random() < 0.67 else "tamil"
        names = [_word(rng, LETTERS[language]) for _ in range(4)]
        facts = []
        for name in names:
            for kind, (statement, question) in FACTS[language].items():
                value = str(rng.integers(1500, 2020)) if kind == "year" else _word(rng, LETTERS[language])
                if kind == "person" and rng.random() < 0.5:
                    value += f" {_word(rng, LETTERS[language])}"
                facts.append((statement.format(name=name, value=value), question.format(name=name), value))
        facts = [facts[place] for place in rng.permutation(len(facts))[: rng.integers(6, len(facts) + 1)]]
        context = "\n".join(statement for statement, _, _ in facts)
        statement, question, value = facts[rng.integers(len(facts))]
        start = context.index(statement) + statement.rindex(value)
        answer = value.split()[0] if rng.random() < 0.05 else value  # annotators sometimes leave out a surname
        rows.append((hex_id(rng, 9), context, question, answer, start, language))
    columns = ["id", "context", "question", "answer_text", "answer_start", "language"]
    write_csv(pd.DataFrame(rows, columns=columns), raw / "train.csv")
