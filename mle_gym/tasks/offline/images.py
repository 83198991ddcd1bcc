"""How image tasks are made of their package's files."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mle_gym.tasks.offline.layout import Prepared, by_rows, majority

__all__ = ["digit_images", "png"]


def png(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    """Encode a greyscale image of shape ``(height, width)`` as PNG.

    Stored without compression: an imaging library's bytes would change with its version.
    """
    height, width = pixels.shape
    lines = b"".join(b"\x00" + row.tobytes() for row in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 0)) + chunk(b"IEND", b"")


def digit_images(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Handwritten digits, one PNG file each."""
    table = np.loadtxt(paths[0], delimiter=",", dtype=np.int64)
    pixels = (table[:, :64].reshape(-1, 8, 8) * 255 / 16).round().astype(np.uint8)
    frame = pd.DataFrame({"row": np.arange(len(table)), "label": table[:, 64]})
    prepared = by_rows(frame, "label", 800, seed, majority, classes=True)
    files: dict[str, bytes] = {}

    def with_files(part: pd.DataFrame, folder: str) -> pd.DataFrame:
        names = [f"{folder}/{i:04d}.png" for i in part["id"]]
        files.update({name: png(pixels[row]) for name, row in zip(names, part["row"], strict=True)})
        part = part.drop(columns="row")
        part.insert(1, "file", names)
        return part

    train, test = with_files(prepared.train, "train"), with_files(prepared.test, "test")
    return replace(prepared, train=train, test=test, files=files)
