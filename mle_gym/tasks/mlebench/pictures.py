"""Pictures of classes, for stand-ins of image classification."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.imitate import hex_id, image_bytes

__all__ = ["class_looks", "class_photo", "class_pixels", "mixed_up", "uuid_like"]


def class_looks(rng: np.random.Generator, classes: int) -> NDArray[np.float64]:
    """Draw how each class of a picture task looks, for :func:`class_pixels`; shape ``(classes, 6)``.

    A look is a colour (three channels), a direction and a number of stripes, and how strong they are.
    """
    colours = rng.uniform(60, 190, (classes, 3))
    stripes = np.column_stack(
        [rng.uniform(0, np.pi, classes), rng.uniform(1, 6, classes), rng.uniform(15, 45, classes)]
    )
    return np.hstack([colours, stripes])


def class_pixels(
    rng: np.random.Generator, look: NDArray[np.float64], side: int, noise: float = 18.0
) -> NDArray[np.float64]:
    """Draw one picture of a class, shape ``(side, side, 3)``: striped, in changing light and with noise."""
    down, across = np.mgrid[0:side, 0:side] / side
    colour, (angle, stripes, strength) = look[:3], look[3:]
    wave = np.sin(2 * np.pi * (stripes * (across * np.cos(angle) + down * np.sin(angle)) + rng.random()))
    light = rng.normal(0, 15) + rng.normal(0, 10, 3)
    pixels: NDArray[np.float64] = colour + light + strength * wave[..., None] + rng.normal(0, noise, (side, side, 3))
    return pixels


def class_photo(rng: np.random.Generator, look: NDArray[np.float64], side: int = 32, kind: str = "JPEG") -> bytes:
    """Return one picture of a class as a JPEG or PNG file."""
    options = {"quality": 80} if kind == "JPEG" else {}
    return image_bytes(class_pixels(rng, look, side), kind, **options)


def mixed_up(rng: np.random.Generator, truth: NDArray[Any], classes: int, share: float) -> NDArray[Any]:
    """Return classes ``0 .. classes - 1`` with a share of the rows drawn anew, for stand-ins that are not too easy."""
    return np.where(rng.random(len(truth)) < share, rng.integers(0, classes, len(truth)), truth)


def uuid_like(rng: np.random.Generator, middle: str) -> str:
    """Return an id such as ``5998cfa4-23d2-11e8-a6a3-ec086b02610b``, whose ``middle`` is given."""
    return f"{hex_id(rng, 8)}-{middle}-{hex_id(rng, 12)}"
