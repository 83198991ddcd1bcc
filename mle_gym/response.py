"""Model text -> plan and program."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

__all__ = ["Response"]

_FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<tag>[^\s`]*)[^\n`]*$", re.MULTILINE)
_PYTHON_TAGS = frozenset({"python", "python3", "py", "{python}"})


@dataclass(frozen=True, slots=True)
class Response:
    r"""An answer taken apart: a plan in words, then one fenced block with the program.

    The program is the first block tagged ``python`` (``py``, ``python3``); where there is none, the first block without
    a tag. The plan is the text before the first block. A block whose end is missing (a generation cut at its token
    limit) reaches to the end of the text. Text with no such block has no program.

    Example:
        >>> Response.parse("Fit a tree.\n```python\nprint(1)\n```\n")
        Response(plan='Fit a tree.', program='print(1)\n')
        >>> Response.parse("I do not know.")
        Response(plan='I do not know.', program='')
    """

    plan: str
    """Text before the first block, stripped."""
    program: str
    """Source of the program with a newline at its end; ``""`` when there is none."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Take ``text`` apart. Never raises for a ``str``."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        blocks: list[tuple[str, str]] = []
        plan_end: int | None = None
        position = 0
        while opening := _FENCE.search(text, position):
            mark = opening["mark"]
            start = min(opening.end() + 1, len(text))
            closing = re.compile(rf"^ {{0,3}}{mark[0]}{{{len(mark)},}}[ \t]*$", re.MULTILINE).search(text, start)
            end = closing.start() if closing else len(text)
            plan_end = opening.start() if plan_end is None else plan_end
            blocks.append((opening["tag"].lower(), text[start:end]))
            position = closing.end() if closing else len(text)
        tagged = [source for tag, source in blocks if tag in _PYTHON_TAGS]
        untagged = [source for tag, source in blocks if not tag]
        program = next(iter(tagged or untagged), "")
        if not program.strip():
            program = ""
        elif not program.endswith("\n"):
            program += "\n"
        return cls(plan=text[:plan_end].strip(), program=program)
