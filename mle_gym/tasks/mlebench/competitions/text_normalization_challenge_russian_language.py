"""Text Normalization Challenge - Russian Language: how is each written token spoken?"""

# ruff: noqa: SIM905 - words in a row read better than a list of them
from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.text import token_accuracy
from mle_gym.tasks.mlebench.text_normalization import Token, prepare_tokens, stand_in_tokens

ONES = (
    "ноль один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать четырнадцать "
    "пятнадцать шестнадцать семнадцать восемнадцать девятнадцать"
).split()
TENS = "двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто".split()
HUNDREDS = "сто двести триста четыреста пятьсот шестьсот семьсот восемьсот девятьсот".split()
ORDINALS = (
    "нулевой первый второй третий четвертый пятый шестой седьмой восьмой девятый десятый одиннадцатый двенадцатый "
    "тринадцатый четырнадцатый пятнадцатый шестнадцатый семнадцатый восемнадцатый девятнадцатый"
).split()
ORDINAL_TENS = "двадцатый тридцатый сороковой пятидесятый шестидесятый семидесятый восьмидесятый девяностый".split()
THOUSANDS = ("тысяча", "тысячи", "тысяч")
UNITS = {
    "км": ("километр", "километра", "километров"),
    "кг": ("килограмм", "килограмма", "килограммов"),
    "м": ("метр", "метра", "метров"),
    "%": ("процент", "процента", "процентов"),
}
YEARS = {"год": "", "года": "ого", "году": "ом"}
LATIN = dict(zip("abcdefghiklmnoprstuvz", "абкдефгхиклмнопрстувз", strict=True))
SYLLABLES = [consonant + vowel for consonant in "бвдзклмнпрст" for vowel in "аеио"]


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of tokens that are right to the letter."""
    return token_accuracy(submission, answers, "id", "after")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the sentences."""
    prepare_tokens(raw, public, private, "ru")


def _agree(number: int, forms: tuple[str, str, str]) -> str:
    """Return the form of a noun that goes with a number: one, two to four, five and more."""
    if number % 100 in range(11, 15) or number % 10 not in range(1, 5):
        return forms[2]
    return forms[0 if number % 10 == 1 else 1]


def _cardinal(number: int) -> str:
    """Spell a number below ten thousand, in the nominative."""
    if number >= 1000:
        head = {1: "", 2: "две "}.get(number // 1000, f"{ONES[number // 1000]} ")
        rest = f" {_cardinal(number % 1000)}" if number % 1000 else ""
        return head + _agree(number // 1000, THOUSANDS) + rest
    parts = [HUNDREDS[number // 100 - 1]] if number >= 100 else []
    low = number % 100
    if low >= 20:
        parts.append(TENS[low // 10 - 2])
        low %= 10
    if low or not parts:
        parts.append(ONES[low])
    return " ".join(parts)


def _ordinal(number: int, ending: str) -> str:
    """Spell an ordinal that is no multiple of 100, in the nominative or with the ending of another case."""
    low = number % 100
    final = low % 10 if low >= 20 and low % 10 else low
    word = ORDINAL_TENS[final // 10 - 2] if final >= 20 else ORDINALS[final]
    if ending:
        word = f"треть{'его' if ending == 'ого' else 'ем'}" if word == "третий" else word[:-2] + ending
    return f"{_cardinal(number - final)} {word}" if number != final else word


def _token(rng: np.random.Generator, vocabulary: list[str]) -> Token:
    """Invent the next token."""
    kind = rng.choice(
        ["PLAIN", "YEAR", "CARDINAL", "ORDINAL", "MEASURE", "LETTERS", "LATIN"],
        p=[0.78, 0.05, 0.04, 0.03, 0.04, 0.03, 0.03],
    )
    number = int(rng.integers(1, 60 if rng.random() < 0.7 else 5000))
    match kind:
        case "YEAR":
            year, noun = int(rng.integers(1901, 2000)), str(rng.choice(list(YEARS)))
            return "DATE", f"{year} {noun}", f"{_ordinal(year, YEARS[noun])} {noun}"
        case "CARDINAL":
            return "CARDINAL", str(number), _cardinal(number)
        case "ORDINAL":
            number, ending = number % 99 + 1, "ого" if rng.random() < 0.3 else ""
            shown = ending and rng.random() < 0.7  # the case cannot always be seen, as in real texts
            return "ORDINAL", f"{number}-го" if shown else f"{number}-й", _ordinal(number, ending)
        case "MEASURE":
            unit = str(rng.choice(list(UNITS)))
            written = f"{number}%" if unit == "%" else f"{number} {unit}"
            return "MEASURE", written, f"{_cardinal(number)} {_agree(number, UNITS[unit])}"
        case "LETTERS":
            letters = "".join(rng.choice(list("АБВГДКЛМНОПРСТ"), size=rng.integers(2, 5)))
            return "LETTERS", letters, " ".join(letters.lower())
        case "LATIN":
            word = "".join(rng.choice(list(LATIN), size=rng.integers(3, 8)))
            return "PLAIN", word.capitalize(), " ".join(f"{LATIN[letter]}_trans" for letter in word)
    word = vocabulary[min(int(rng.exponential(len(vocabulary) / 6)), len(vocabulary) - 1)]
    return ("PLAIN", word, word) if rng.random() < 0.99 else ("PLAIN", f"{word}-", word)


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Sentences of made-up words, with numbers, years, measures, abbreviations and words in Latin letters."""
    vocabulary = ["".join(rng.choice(SYLLABLES, size=rng.integers(1, 5))) for _ in range(600)]

    def sentence(rng: np.random.Generator) -> list[Token]:
        tokens = [_token(rng, vocabulary) for _ in range(int(rng.integers(5, 16)))]
        return [*tokens, ("PUNCT", ".", ".")]

    stand_in_tokens(raw, rng, size, "ru", sentence)
