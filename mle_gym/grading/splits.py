"""The reward firewall: cutting answers once into a public and a private part by a salted hash of whole units."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["CannotCut", "cut", "hash_rank"]


class CannotCut(ValueError):
    """The answers have too few units, or too few of a class, to be cut in two."""


def hash_rank(keys: Sequence[str], salt: str) -> NDArray[np.int64]:
    """Order of ``keys`` by SHA-256 of salt and key: a shuffle that is the same on every machine, for ever.

    Returns:
        Indices into ``keys``, shape ``(len(keys),)``.
    """
    digests = [hashlib.sha256(f"{salt}\x1f{key}".encode()).digest() for key in keys]
    return np.array(sorted(range(len(keys)), key=lambda i: (digests[i], i)), dtype=np.int64)


def cut(
    units: Sequence[str],
    salt: str,
    classes: Sequence[str] | None = None,
    fraction: float = 0.5,
) -> NDArray[np.bool_]:
    """Cut rows in two so that no unit is on both sides.

    Args:
        units: The unit of each row (a row id, a patient, a month), shape ``(rows,)``.
        salt: Decides which unit goes where; fixed for a task version.
        classes: The class of each row. When given, the cut is stratified and each part must hold every class.
        fraction: Share of the units in the first part.

    Returns:
        True for rows of the first part, shape ``(rows,)``.

    Raises:
        CannotCut: A part would have fewer than two units or would lack a class.
        ValueError: ``fraction`` is not inside (0, 1), or lengths differ.
    """
    if not 0.0 < fraction < 1.0:
        raise ValueError(f"fraction is {fraction}; it must be inside (0, 1).")
    if classes is not None and len(classes) != len(units):
        raise ValueError(f"classes has {len(classes)} rows and units has {len(units)}; they must be equal.")
    strata: dict[str, str] = {}
    counts = Counter(classes) if classes is not None else Counter()
    for row, unit in enumerate(units):
        # A unit with several classes counts for its rarest one, which is the hardest to have on both sides.
        label = classes[row] if classes is not None else ""
        if unit not in strata or counts[label] < counts[strata[unit]]:
            strata[unit] = label
    names = list(strata)
    groups: dict[str, list[str]] = {}
    for index in hash_rank(names, salt):
        groups.setdefault(strata[names[index]], []).append(names[index])

    first: set[str] = set()
    seen = taken = 0
    for label in sorted(groups):
        members = groups[label]
        seen += len(members)
        # Rounding the running total, not each stratum, keeps the whole at the asked share.
        share = round(seen * fraction) - taken
        if len(members) >= 2:
            share = min(max(share, 1), len(members) - 1)
        share = min(max(share, 0), len(members))
        first.update(members[:share])
        taken += share
    mask = np.array([unit in first for unit in units], dtype=np.bool_)

    if min(taken, len(names) - taken) < 2:
        raise CannotCut(f"The answers have {len(names)} unit(s); each part needs at least two.")
    if classes is not None:
        for part, inside in (("first", mask), ("second", ~mask)):
            present = {label for label, there in zip(classes, inside.tolist(), strict=True) if there}
            if missing := sorted(set(classes) - present):
                raise CannotCut(f"The {part} part would have no row of class {missing[0]!r}.")
    return mask
