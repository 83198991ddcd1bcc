"""Error sentences that name what the user probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["choose"]


def choose(what: str, value: object, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``choices``.

    Raises:
        ValueError: It is not; the sentence names the nearest choice and all of them (the first twenty).

    Example:
        >>> choose("reward", "papr", ["medal", "paper"])
        Traceback (most recent call last):
        ...
        ValueError: reward='papr' is not known; did you mean 'paper'? Choices: medal, paper.
    """
    names = list(choices)
    if isinstance(value, str) and value in names:
        return value
    near = difflib.get_close_matches(str(value), names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    raise ValueError(f"{what}={value!r} is not known{hint} Choices: {', '.join(names[:20])}{more}.")
