"""What a report is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Figure", "Section", "Table"]


@dataclass(frozen=True)
class Table:
    """Columns and rows of text; the first cell of a row names it."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Figure:
    """A picture with its words and its numbers."""

    title: str
    svg: str
    caption: str
    table: Table | None = None


@dataclass(frozen=True)
class Section:
    """A heading with what belongs under it."""

    title: str
    text: str = ""
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    code: str = ""
