"""Consistent new names for a table's columns, in prompt and program alike."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Renaming", "draw_renaming"]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_RESERVED = frozenset(
    _words("""
    id target num cat date text file number category quadratic english char char_wb median mean uniform distance scale
    year month dayofweek dayofyear
    """)
)
"""Strings that programs use with another meaning, and words with which prompts describe tables."""
_WORDS = _words("""
    age amount area balance band base birth block brand budget capacity category channel charge city claim code colour
    contract cost count country credit customer day days deal debt degree delay delivery density department deposit
    depth device distance district dose duration energy engine entry error event fare fee flag flow fuel gender grade
    group growth height home hours house humidity income index interest job kind land last layer length level limit
    loan location machine marital market material max mean member mileage min mode model month motor name number offer
    order origin output owner pay period phone plan point policy pressure price product profit quality quantity quota
    rain range rank rate ratio reason record region rent result review risk role rooms salary sales score season seat
    sector sex shift shop size source speed stage start state status step stock store street style supply surface tax
    team temp term test ticket time tool total town track trade transport trip turnover type union unit usage user
    value visits volume wage weather week weight width wind work year yield zone
""")
_TOPICS = _words("""
    Customers Patients Houses Cars Flights Orders Students Machines Loans Farms Shops Trips Claims Wines Players
    Visitors Sensors Rivers Mails Books Films Schools Trees Ships Roads Factories Hospitals Phones Rooms Meals
""")
_ABOUT = (
    "that leave",
    "and their prices",
    "at risk",
    "by region",
    "in a city",
    "of a company",
    "over a year",
    "that fail",
    "who pay late",
    "with a claim",
    "of good quality",
    "and what they cost",
    "that are sold",
    "of a bank",
    "who come back",
    "from a survey",
)


@dataclass(frozen=True)
class Renaming:
    """New names for columns, and a new title.

    A program renamed this way does to the renamed table what the original did to the original table, so it stays an
    executed demonstration. A model that sees a task under many names learns to copy names from the prompt.
    """

    names: dict[str, str]
    """Old column name -> new one."""
    title: str

    def prompt(self, text: str) -> str:
        """Rename the columns in an observation and replace its title."""
        lines = text.split("\n")
        renamed = [f"# {self.title}" if line.startswith("# ") else self._columns(line) for line in lines]
        return "\n".join(renamed)

    def program(self, source: str) -> str:
        """Rename the columns in a program, where they are strings."""
        return re.sub(r'"([^"\n]*)"', lambda match: f'"{self.names.get(match[1], match[1])}"', source)

    def _columns(self, line: str) -> str:
        if not self.names:
            return line
        names = "|".join(re.escape(name) for name in sorted(self.names, key=len, reverse=True))
        return re.sub(rf"(?<![\w./])(?:{names})(?![\w/])", lambda match: self.names[match[0]], line)


def draw_renaming(columns: Sequence[str], draw: random.Random) -> Renaming:
    """Draw new names for ``columns``, all in one style and all different."""
    style = draw.choice([_snake, _snake, _camel, _title, str.upper, _joined])
    taken = set(columns) | _RESERVED
    names: dict[str, str] = {}
    for column in columns:
        if column in _RESERVED:
            continue
        new = column
        while new in taken:
            new = style("_".join(draw.sample(_WORDS, draw.choice([1, 1, 1, 2]))))
            if draw.random() < 0.1:
                new += str(draw.randint(1, 99))
        taken.add(new)
        names[column] = new
    return Renaming(names, f"{draw.choice(_TOPICS)} {draw.choice(_ABOUT)}")


def _snake(name: str) -> str:
    return name


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _title(name: str) -> str:
    return "_".join(part.capitalize() for part in name.split("_"))


def _joined(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
