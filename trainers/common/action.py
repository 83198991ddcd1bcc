"""A response on its way to an environment."""

from __future__ import annotations

import hashlib
from typing import Self

__all__ = ["Action"]


class Action(str):
    """A response that knows its ticket, so that whoever executes it can say which one it was.

    Any other code sees a ``str``.
    """

    __slots__ = ("attempt", "generated", "queued", "ticket")

    ticket: int
    """Of the run; -1 outside training."""
    attempt: int
    """1, or more when the infrastructure failed before."""
    queued: float
    """When it was asked for, seconds since the run's start ..."""
    generated: float
    """... and when it was there."""

    def __new__(
        cls, text: str, ticket: int = -1, attempt: int = 1, queued: float = 0.0, generated: float = 0.0
    ) -> Self:
        """Attach a ticket to a response."""
        made = super().__new__(cls, text)
        made.ticket, made.attempt, made.queued, made.generated = ticket, attempt, queued, generated
        return made

    def __getnewargs__(self) -> tuple[str, int, int, float, float]:  # type: ignore[override]
        """For pickle."""
        return str(self), self.ticket, self.attempt, self.queued, self.generated

    def again(self) -> Self:
        """The next attempt."""
        return type(self)(str(self), self.ticket, self.attempt + 1, self.queued, self.generated)

    @property
    def digest(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.encode("utf-8", "surrogatepass")).hexdigest()
