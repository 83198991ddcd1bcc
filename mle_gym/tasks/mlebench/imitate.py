"""What the generators of stand-in data share."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "dicom_bytes",
    "ellipse",
    "hex_id",
    "image_bytes",
    "sentence",
    "split_labels",
    "wav_bytes",
    "words",
    "write_zip",
]

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


def ellipse(
    shape: tuple[int, int], centre: tuple[float, float], radii: tuple[float, float], angle: float = 0.0
) -> NDArray[np.float64]:
    """Return how far each pixel lies inside an ellipse: 1 at its centre, 0 on its edge, negative outside.

    Args:
        shape: Height and width.
        centre: Row and column, in pixels.
        radii: Along rows and columns before the turn, in pixels.
        angle: Turn, in radians.
    """
    rows, columns = np.indices(shape, dtype=np.float64)
    y, x = rows - centre[0], columns - centre[1]
    along, across = y * np.cos(angle) + x * np.sin(angle), x * np.cos(angle) - y * np.sin(angle)
    inside: NDArray[np.float64] = 1.0 - np.hypot(along / radii[0], across / radii[1])
    return inside


def split_labels(
    rng: np.random.Generator, rows: int, shares: Sequence[float], test_size: float = 0.1, random_state: int = 0
) -> NDArray[np.int64]:
    """Return a class for each row, shape ``(rows,)``, so that a later split has all classes on both sides.

    Args:
        rng: Decides which rows get which class.
        rows: Number of rows.
        shares: Share of each class; each part has it up to rounding.
        test_size: As for :func:`mle_gym.tasks.mlebench.files.split_rows`, whose test part is meant.
        random_state: Likewise.
    """
    from mle_gym.tasks.mlebench.files import split_rows

    labels = np.empty(rows, dtype=np.int64)
    ends = np.cumsum(shares) / np.sum(shares)
    for part in split_rows(np.arange(rows), test_size=test_size, random_state=random_state):
        at = (np.arange(len(part)) + 0.5) / len(part)
        labels[rng.permutation(part)] = np.searchsorted(ends, at)
    return labels


def write_zip(archive: Path, members: Mapping[str, bytes | str]) -> None:
    """Write a zip file of name -> content."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)


def wav_bytes(sound: NDArray[np.float64], rate: int) -> bytes:
    """Encode sound in -1..1, shape ``(samples,)``, as a WAV file of 16 bits; ``rate`` is in Hz."""
    from scipy.io import wavfile  # type: ignore[import-untyped]

    buffer = io.BytesIO()
    wavfile.write(buffer, rate, (sound.clip(-1, 1) * 32767).astype(np.int16))
    return buffer.getvalue()


def dicom_bytes(pixels: NDArray[Any], number: int, **elements: Any) -> bytes:
    """Encode a grey image, clipped to 12 bits, as a DICOM file.

    Args:
        pixels: Shape ``(height, width)``.
        number: Makes the image's UID.
        elements: Further data elements by keyword, such as ``PatientID`` or ``Modality``.
    """
    from pydicom.dataset import FileDataset, FileMetaDataset
    from pydicom.uid import UID, ExplicitVRLittleEndian, SecondaryCaptureImageStorage

    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
    meta.MediaStorageSOPInstanceUID = UID(f"1.2.840.99.{number + 1}")
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    image = FileDataset("", {}, file_meta=meta, preamble=bytes(128))
    image.SOPClassUID, image.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    image.PhotometricInterpretation, image.SamplesPerPixel = "MONOCHROME2", 1
    image.Rows, image.Columns = pixels.shape
    image.BitsAllocated, image.BitsStored, image.HighBit, image.PixelRepresentation = 16, 12, 11, 0
    for name, value in elements.items():
        setattr(image, name, value)
    image.PixelData = np.clip(pixels, 0, 4095).astype("<u2").tobytes()
    buffer = io.BytesIO()
    image.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()
