"""Videos for stand-in data: JPEG pictures one after the other in an MP4 file, which needs no encoder."""

from __future__ import annotations

import struct
from collections.abc import Sequence

__all__ = ["mp4_bytes"]

_SCALE = 1000
"""Ticks in a second."""
_MATRIX = struct.pack(">9i", 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)


def mp4_bytes(pictures: Sequence[bytes], width: int, height: int, rate: float) -> bytes:
    """Return an MP4 file (ISO/IEC 14496-12) of Motion JPEG, which FFmpeg and OpenCV read.

    Args:
        pictures: JPEG files, all of the same size.
        width: In pixels.
        height: In pixels.
        rate: Pictures in a second.
    """
    tick = round(_SCALE / rate)
    length = tick * len(pictures)
    kind = _box("ftyp", b"isom", struct.pack(">I", 512), b"isomiso2mp41")
    data = _box("mdat", *pictures)

    def movie(first: int) -> bytes:
        entry = struct.pack(">6xH16xHHIIIH32sHh", 1, width, height, 72 << 16, 72 << 16, 0, 1, b"", 24, -1)
        samples = _box(
            "stbl",
            _box("stsd", struct.pack(">II", 0, 1), _box("jpeg", entry)),
            _box("stts", struct.pack(">IIII", 0, 1, len(pictures), tick)),
            _box("stsc", struct.pack(">IIIII", 0, 1, 1, len(pictures), 1)),
            _box("stsz", struct.pack(">III", 0, 0, len(pictures)), *(struct.pack(">I", len(one)) for one in pictures)),
            _box("stco", struct.pack(">III", 0, 1, first)),
        )
        place = _box("dinf", _box("dref", struct.pack(">II", 0, 1), _box("url ", struct.pack(">I", 1))))
        media = _box(
            "mdia",
            _box("mdhd", struct.pack(">IIIIIHH", 0, 0, 0, _SCALE, length, 0x55C4, 0)),
            _box("hdlr", struct.pack(">II4s12x", 0, 0, b"vide"), b"video\0"),
            _box("minf", _box("vmhd", struct.pack(">I8x", 1)), place, samples),
        )
        head = struct.pack(">IIIIII8xHHHH", 3, 0, 0, 1, 0, length, 0, 0, 0, 0)
        track = _box("trak", _box("tkhd", head, _MATRIX, struct.pack(">II", width << 16, height << 16)), media)
        about = struct.pack(">IIIIIIHxxxxxxxxxx", 0, 0, 0, _SCALE, length, 1 << 16, 1 << 8)
        return _box("moov", _box("mvhd", about, _MATRIX, struct.pack(">24xI", 2)), track)

    # The place of the pictures is a number of fixed width, so the length of the movie box is known before it.
    return kind + movie(len(kind) + len(movie(0)) + 8) + data


def _box(kind: str, *content: bytes) -> bytes:
    whole = b"".join(content)
    return struct.pack(">I4s", len(whole) + 8, kind.encode("ascii")) + whole
