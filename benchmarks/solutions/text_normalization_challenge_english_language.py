"""Spoken English: what a token mostly became in training, and rules for numbers, dates and initials never seen."""

import csv
import re

import pandas as pd

ROWS = 1_000_000  # real data have nine million; for a lookup these do
ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
ONES += ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
ODD = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth"}
ODD["twelve"] = "twelfth"
UNITS = {"km": "kilometers", "kg": "kilograms", "m": "meters", "ft": "feet", "mph": "miles per hour", "%": "percent"}
MONTH = "(January|February|March|April|May|June|July|August|September|October|November|December)"


def whole(digits):
    """A number with commas between thousands."""
    return int(digits.replace(",", ""))


def spell(number):
    """A cardinal number below a thousand billions."""
    for size, name in ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = f" {spell(number % size)}" if number % size else ""
            return f"{spell(number // size)} {name}{rest}"
    if number < 20:
        return ONES[number]
    return TENS[number // 10 - 2] + (f" {ONES[number % 10]}" if number % 10 else "")


def ordinal(number):
    """First, second, ..."""
    *head, last = spell(number).split()
    return " ".join([*head, ODD.get(last) or (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")])


def year(number):
    """Two numbers of two digits, where that is how one says it."""
    century, rest = divmod(number, 100)
    if century == 20 and rest < 10:
        return spell(number)
    ending = "hundred" if rest == 0 else f"o {ONES[rest]}" if rest < 10 else spell(rest)
    return f"{spell(century)} {ending}"


RULES = [
    (r"(1[0-9]|20)\d\d", lambda m: year(int(m[0]))),
    (r"\d[\d,]{0,11}", lambda m: spell(whole(m[0]))),
    (r"(\d{1,6})(st|nd|rd|th)", lambda m: ordinal(int(m[1]))),
    (r"(\d[\d,]{0,11})\.(\d+)", lambda m: f"{spell(whole(m[1]))} point {' '.join(ONES[int(d)] for d in m[2])}"),
    (r"(\d[\d,]{0,11}) ?(km|kg|m|ft|mph|%)", lambda m: f"{spell(whole(m[1]))} {UNITS[m[2]]}"),
    (r"\$(\d[\d,]{0,11})", lambda m: f"{spell(whole(m[1]))} dollars"),
    (rf"{MONTH} (\d\d?), (\d{{4}})", lambda m: f"{m[1].lower()} {ordinal(int(m[2]))} {year(int(m[3]))}"),
    (rf"(\d\d?) {MONTH} (\d{{4}})", lambda m: f"the {ordinal(int(m[1]))} of {m[2].lower()} {year(int(m[3]))}"),
    (rf"{MONTH} (\d\d?)", lambda m: f"{m[1].lower()} {ordinal(int(m[2]))}"),
    (r"[A-Z]{2,5}", lambda m: " ".join(m[0].lower())),
]


def speak(token):
    """The first rule that fits, else the token as it stands."""
    for pattern, rule in RULES:
        if match := re.fullmatch(pattern, token, re.ASCII):
            return rule(match)
    return token


def predict(pairs, tokens):
    """What each token mostly became, or what the rules say."""
    counts = pairs.groupby(["before", "after"], sort=False).size().sort_values(ascending=False, kind="stable")
    usual = counts.reset_index().drop_duplicates("before").set_index("before")["after"].to_dict()
    return [usual[token] if token in usual else speak(token) for token in tokens]


pairs = pd.read_csv("input/en_train.csv.zip", usecols=["before", "after"], dtype=str, keep_default_na=False, nrows=ROWS)
test = pd.read_csv("input/en_test_2.csv.zip", dtype=str, keep_default_na=False)
cut = len(pairs) * 9 // 10
held_out = pairs[cut:]
right = pd.Series(predict(pairs[:cut], held_out["before"]), index=held_out.index) == held_out["after"]
left = (held_out["before"] == held_out["after"]).mean()
print(f"accuracy {right.mean():.4f} on {len(held_out)} held-out tokens; as they stand {left:.4f}")
ids = test["sentence_id"] + "_" + test["token_id"]
submission = pd.DataFrame({"id": ids, "after": predict(pairs, test["before"])})
submission.to_csv("submission.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
