"""Text Normalization Challenge - English Language: how is each written token spoken?"""

# ruff: noqa: SIM905 - words in a row read better than a list of them
from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.imitate import words
from mle_gym.tasks.mlebench.text import token_accuracy
from mle_gym.tasks.mlebench.text_normalization import Token, prepare_tokens, stand_in_tokens

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
ODD_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
MONTHS = "January February March April May June July August September October November December".split()
UNITS = {"km": "kilometer", "kg": "kilogram", "m": "meter", "ft": "foot", "mph": "mile per hour"}
LINKS = "the of and to in since by with".split()


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of tokens that are right to the letter."""
    return token_accuracy(submission, answers, "id", "after")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the sentences."""
    prepare_tokens(raw, public, private, "en")


def _cardinal(number: int) -> str:
    """Spell a number below a million."""
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = f" {_cardinal(number % size)}" if number % size else ""
            return f"{_cardinal(number // size)} {name}{rest}"
    if number < 20:
        return ONES[number]
    return TENS[number // 10 - 2] + (f" {ONES[number % 10]}" if number % 10 else "")


def _ordinal(number: int) -> str:
    *head, last = _cardinal(number).split()
    ending = ODD_ORDINALS.get(last) or (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")
    return " ".join([*head, ending])


def _year(number: int) -> str:
    century, rest = divmod(number, 100)
    if rest == 0 or (century == 20 and rest < 10):
        return f"{_cardinal(century)} hundred" if century != 20 else _cardinal(number)
    return f"{_cardinal(century)} {f'o {ONES[rest]}' if rest < 10 else _cardinal(rest)}"


def _unit(number: int, unit: str) -> str:
    name = UNITS[unit]
    if number == 1:
        return name
    return {"ft": "feet", "mph": "miles per hour"}.get(unit, f"{name}s")


def _token(rng: np.random.Generator, vocabulary: list[str], before: str) -> Token:
    """Invent the next token; a number of four digits is a year after some words, and else just a number."""
    kind = rng.choice(
        ["PLAIN", "LINK", "YEAR", "CARDINAL", "ORDINAL", "DATE", "MEASURE", "MONEY", "DECIMAL", "LETTERS"],
        p=[0.62, 0.2, 0.03, 0.03, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02],
    )
    number = int(rng.integers(1, 60 if rng.random() < 0.7 else 5000))
    match kind:
        case "YEAR":
            year = int(rng.integers(1900, 2020))
            if before in ("in", "since", "by") or rng.random() < 0.7:
                return "DATE", str(year), _year(year)
            return "CARDINAL", str(year), _cardinal(year)
        case "CARDINAL":
            return "CARDINAL", f"{number:,}", _cardinal(number)
        case "ORDINAL":
            number = number % 99 + 1
            last = number % 10 if number // 10 != 1 else 0
            return "ORDINAL", f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }", _ordinal(number)
        case "DATE":
            month, day, year = rng.choice(MONTHS), int(rng.integers(1, 29)), int(rng.integers(1900, 2020))
            if rng.random() < 0.5:
                return "DATE", f"{month} {day}, {year}", f"{month.lower()} {_ordinal(day)} {_year(year)}"
            return "DATE", f"{day} {month} {year}", f"the {_ordinal(day)} of {month.lower()} {_year(year)}"
        case "MEASURE":
            unit = str(rng.choice(list(UNITS)))
            return "MEASURE", f"{number} {unit}", f"{_cardinal(number)} {_unit(number, unit)}"
        case "MONEY":
            return "MONEY", f"${number}", f"{_cardinal(number)} dollar{'s' * (number != 1)}"
        case "DECIMAL":
            tenth = int(rng.integers(1, 10))
            return "DECIMAL", f"{number}.{tenth}", f"{_cardinal(number)} point {ONES[tenth]}"
        case "LETTERS":
            letters = "".join(rng.choice(list("ABCDEFGHIKLMNOPRSTUVW"), size=rng.integers(2, 5)))
            return "LETTERS", letters, " ".join(letters.lower())
        case "LINK":
            word = str(rng.choice(LINKS))
            return "PLAIN", word, word
    word = vocabulary[min(int(rng.exponential(len(vocabulary) / 6)), len(vocabulary) - 1)]
    if word.endswith("me") and rng.random() < 0.8:  # two spellings of one word, like metre and meter
        return "PLAIN", word, f"{word[:-1]}a"
    return "PLAIN", word, word


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Sentences of made-up words, with numbers, dates, measures and abbreviations as Wikipedia has them."""
    vocabulary = words(rng, 600)

    def sentence(rng: np.random.Generator) -> list[Token]:
        tokens: list[Token] = []
        for _ in range(int(rng.integers(5, 16))):
            tokens.append(_token(rng, vocabulary, tokens[-1][1] if tokens else ""))
            if rng.random() < 0.08:
                tokens.append(("PUNCT", ",", ","))
        return [*tokens, ("PUNCT", ".", ".")]

    stand_in_tokens(raw, rng, size, "en", sentence)
