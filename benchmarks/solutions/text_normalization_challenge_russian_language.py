"""Spoken Russian: what a token mostly became in training, and rules for numbers, initials and Latin words."""

import csv
import re
from collections import Counter, defaultdict

import pandas as pd

ROWS = 1_000_000  # real data have ten million; for a lookup these do
ONES = ["ноль", "один", "два", "три", "четыре", "пять", "шесть", "семь", "восемь", "девять", "десять", "одиннадцать"]
ONES += ["двенадцать", "тринадцать", "четырнадцать", "пятнадцать", "шестнадцать", "семнадцать", "восемнадцать"]
ONES += ["девятнадцать"]
TENS = ["двадцать", "тридцать", "сорок", "пятьдесят", "шестьдесят", "семьдесят", "восемьдесят", "девяносто"]
HUNDREDS = ["сто", "двести", "триста", "четыреста", "пятьсот", "шестьсот", "семьсот", "восемьсот", "девятьсот"]
UNITS = {"км": "километр - а ов", "кг": "килограмм - а ов", "м": "метр - а ов", "%": "процент - а ов"}


def agree(number, stem, one, few, many):
    """The form of a noun that goes with a number."""
    few_or_many = few if number % 10 in (2, 3, 4) else many
    ending = many if number % 100 in range(11, 15) else one if number % 10 == 1 else few_or_many
    return stem + ending.replace("-", "")


def spell(number):
    """A number below a million, in the nominative."""
    if number >= 1000:
        head = {1: "", 2: "две "}.get(number // 1000) if number < 3000 else f"{spell(number // 1000)} "
        tail = f" {spell(number % 1000)}" if number % 1000 else ""
        return f"{head}{agree(number // 1000, 'тысяч', 'а', 'и', '-')}{tail}"
    parts = [HUNDREDS[number // 100 - 1]] if number >= 100 else []
    rest = number % 100
    if rest >= 20:
        parts.append(TENS[rest // 10 - 2])
        rest %= 10
    return " ".join([*parts, ONES[rest]] if rest or not parts else parts)


def learn(pairs):
    """The usual form of each token, of each number before a word (a year, mostly), and of each Latin letter."""
    counts = pairs.groupby(["before", "after"], sort=False).size().sort_values(ascending=False, kind="stable")
    usual = counts.reset_index().drop_duplicates("before").set_index("before")["after"].to_dict()
    letters, endings = defaultdict(Counter), defaultdict(Counter)
    for before, after in usual.items():
        spoken = after.split()
        if before.isascii() and before.isalpha() and len(spoken) == len(before):
            for letter, sound in zip(before.lower(), spoken, strict=True):
                letters[letter][sound] += 1
        if (match := re.fullmatch(r"\d*?(\d\d?) (\w+)", before)) and len(spoken) > 1:
            endings[int(match[1]), match[2]][" ".join(spoken[-2:])] += 1
    return usual, *({key: max(found, key=found.get) for key, found in table.items()} for table in (letters, endings))


def speak(token, letters, endings):
    """The first rule that fits, else the token as it stands."""
    if re.fullmatch(r"\d{1,6}", token, re.ASCII):
        return spell(int(token))
    if match := re.fullmatch(r"(\d{1,6}) ?(км|кг|м|%)", token, re.ASCII):
        return f"{spell(int(match[1]))} {agree(int(match[1]), *UNITS[match[2]].split())}"
    if match := re.fullmatch(r"([0-9]{4}) (\w+)", token):  # a year: as other years with the same end
        number, word = int(match[1]), match[2]
        last = number % 100 if number % 100 < 20 else number % 10 or number % 100
        if ending := endings.get((last, word)) or endings.get((number % 10, word)):
            return f"{spell(number - last)} {ending}"
    if re.fullmatch(r"[А-Я]{2,5}", token):
        return " ".join(token.lower())
    if token.isascii() and token.isalpha() and len(token) > 1:
        return " ".join(letters.get(letter, letter) for letter in token.lower())
    return token


def predict(pairs, tokens):
    """What each token mostly became, or what the rules say."""
    usual, letters, endings = learn(pairs)
    return [usual[token] if token in usual else speak(token, letters, endings) for token in tokens]


pairs = pd.read_csv("input/ru_train.csv.zip", usecols=["before", "after"], dtype=str, keep_default_na=False, nrows=ROWS)
test = pd.read_csv("input/ru_test_2.csv.zip", dtype=str, keep_default_na=False)
cut = len(pairs) * 9 // 10
held_out = pairs[cut:]
right = pd.Series(predict(pairs[:cut], held_out["before"]), index=held_out.index) == held_out["after"]
left = (held_out["before"] == held_out["after"]).mean()
print(f"accuracy {right.mean():.4f} on {len(held_out)} held-out tokens; as they stand {left:.4f}")
ids = test["sentence_id"] + "_" + test["token_id"]
submission = pd.DataFrame({"id": ids, "after": predict(pairs, test["before"])})
submission.to_csv("submission.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
