"""Error sentences that name what the user probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["choose", "unknown_argument"]


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
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    raise ValueError(f"{what}={value!r} is not known{_near(value, names)} Choices: {', '.join(names[:20])}{more}.")


def unknown_argument(name: str, names: Iterable[str]) -> str:
    """Return the sentence for a keyword argument that does not exist.

    Example:
        >>> unknown_argument("rewards", ["data", "reward"])
        "There is no argument 'rewards'; did you mean 'reward'? Arguments: data, reward."
    """
    known = list(names)
    return f"There is no argument {name!r}{_near(name, known)} Arguments: {', '.join(known)}."


def _near(value: object, names: list[str]) -> str:
    near = difflib.get_close_matches(str(value), names, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else "."
