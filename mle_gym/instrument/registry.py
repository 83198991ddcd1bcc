"""Instrumenters by name."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from mle_gym.instrument.base import Instrumenter
from mle_gym.suggest import choose

__all__ = ["INSTRUMENTERS", "make_instrumenter"]

GROUP = "mle_gym.instrumenters"
"""Entry-point group in which other packages register theirs; the built-in names cannot be taken over."""

INSTRUMENTERS: dict[str, str] = {
    "probe": "mle_gym.instrument.probe:ProbeInstrumenter",
    "llm": "mle_gym.instrument.llm:LLMInstrumenter",
    "none": "mle_gym.instrument.none:NoInstrumenter",
}
"""Built-in name -> class, imported when it is made."""


def make_instrumenter(name: str, **options: object) -> Instrumenter:
    """Return the instrumenter of that name.

    Args:
        name: ``probe``, ``llm``, ``none`` or a name from the entry-point group ``mle_gym.instrumenters``.
        options: Passed to its constructor; ``llm`` needs ``generate``.

    Raises:
        ValueError: There is no such instrumenter, or it does not take these options.

    Example:
        >>> make_instrumenter("none").name
        'none'
    """
    found = {point.name: point for point in entry_points(group=GROUP)}
    choose("instrumenter", name, sorted({*INSTRUMENTERS, *found}))
    if name in INSTRUMENTERS:
        module, _, cls = INSTRUMENTERS[name].partition(":")
        kind = getattr(import_module(module), cls)
    else:
        kind = found[name].load()
    try:
        made = kind(**options)
    except TypeError as error:
        raise ValueError(f"instrumenter={name!r} does not take these options: {error}.") from error
    if not isinstance(made, Instrumenter):
        raise ValueError(f"instrumenter={name!r} gives a {type(made).__name__}, not an Instrumenter.")
    return made
