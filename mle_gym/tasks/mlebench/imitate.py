"""What the generators of stand-in data share."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["hex_id", "image_bytes", "sentence", "words"]

_SYLLABLES = tuple(consonant + vowel for consonant in "bdklmnrst" for vowel in "aeio")


def hex_id(rng: np.random.Generator, digits: int = 32) -> str:
    """Return a random hexadecimal id."""
    return rng.bytes((digits + 1) // 2).hex()[:digits]


def words(rng: np.random.Generator, count: int) -> list[str]:
    """Return ``count`` different made-up words of two to four syllables."""
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(rng.choice(_SYLLABLES, size=rng.integers(2, 5)))] = None
    return list(found)


def sentence(rng: np.random.Generator, vocabulary: list[str], length: int) -> str:
    """Return ``length`` words of a vocabulary, the first ones more often (a Zipf-like law)."""
    weights = 1.0 / np.arange(1, len(vocabulary) + 1)
    return " ".join(rng.choice(vocabulary, size=length, p=weights / weights.sum()))


def image_bytes(pixels: NDArray[Any], kind: str = "PNG", **options: Any) -> bytes:
    """Encode pixels, shape ``(height, width)`` or ``(height, width, 3)``, clipped to 0..255."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(buffer, kind, **options)
    return buffer.getvalue()
