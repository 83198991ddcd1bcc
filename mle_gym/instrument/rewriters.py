"""Models that rewrite programs, by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from mle_gym.suggest import choose

__all__ = ["make_rewriter"]

GROUP = "mle_gym.rewriters"
"""Entry-point group of backends: classes whose instances are called with a prompt and return the answer.

An instance may have ``identity``, a text that names the model and its settings and keeps its answers on disk apart
from others', and ``check()``, which raises ``ValueError`` where the model cannot be had.
"""

_BUILT_IN = {"openai": "mle_gym.instrument.endpoint:ChatEndpoint"}


def make_rewriter(backend: str, **options: object) -> Callable[[str], str]:
    """Return a rewriting model, checked.

    Args:
        backend: ``openai``, a name in the entry-point group ``mle_gym.rewriters``, or ``package.module:Class``.
        options: Its constructor's arguments.

    Raises:
        ValueError: There is no such backend, a package for it is missing, or it cannot be used so.
    """
    try:
        kind = _find(backend)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"The instrumenter's backend {backend!r} cannot be imported: {error}.") from error
    try:
        made: Callable[[str], str] = kind(**options)
    except TypeError as error:
        raise ValueError(f"The instrumenter's backend {backend!r} does not take these options: {error}.") from error
    check = getattr(made, "check", None)
    if check is not None:
        check()
    return made


def _find(backend: str) -> Any:
    if ":" in backend:
        module, _, name = backend.partition(":")
        return getattr(import_module(module), name)
    found = {point.name: point for point in entry_points(group=GROUP)}
    choose("instrumenter backend", backend, sorted({*_BUILT_IN, *found}))
    if backend in _BUILT_IN:
        module, _, name = _BUILT_IN[backend].partition(":")
        return getattr(import_module(module), name)
    return found[backend].load()
