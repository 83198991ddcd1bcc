"""An MP4 file, taken apart by the letter of ISO/IEC 14496-12."""

from __future__ import annotations

import io
import struct

import numpy as np
from PIL import Image

from mle_gym.tasks.mlebench.imitate import image_bytes
from mle_gym.tasks.mlebench.video import mp4_bytes

_PARENTS = {b"moov", b"trak", b"mdia", b"minf", b"stbl"}


def _boxes(data: bytes, start: int, end: int) -> dict[bytes, tuple[int, int]]:
    """Place of the content of each box, inner ones too."""
    found = {}
    while start < end:
        size, kind = struct.unpack_from(">I4s", data, start)
        found[kind] = (start + 8, start + size)
        if kind in _PARENTS:
            found |= _boxes(data, start + 8, start + size)
        start += size
    assert start == end
    return found


def test_pictures_are_found_where_the_index_says() -> None:
    shots = [image_bytes(np.full((16, 32, 3), level), "JPEG") for level in (0, 90, 180, 250)]
    video = mp4_bytes(shots, 32, 16, 10.0)
    boxes = _boxes(video, 0, len(video))
    assert list(boxes)[:2] == [b"ftyp", b"moov"]
    count = struct.unpack_from(">I", video, boxes[b"stsz"][0] + 8)[0]
    sizes = struct.unpack_from(f">{count}I", video, boxes[b"stsz"][0] + 12)
    at = struct.unpack_from(">I", video, boxes[b"stco"][0] + 8)[0]
    assert at == boxes[b"mdat"][0]
    levels = []
    for size in sizes:
        with Image.open(io.BytesIO(video[at : at + size])) as picture:
            assert picture.size == (32, 16)
            levels.append(round(float(np.asarray(picture).mean())))
        at += size
    assert at == boxes[b"mdat"][1]
    assert levels == [0, 90, 180, 250]
    scale, length = struct.unpack_from(">II", video, boxes[b"mvhd"][0] + 12)
    assert length / scale == 0.4
    assert struct.unpack_from(">HH", video, boxes[b"stsd"][0] + 8 + 8 + 24) == (32, 16)
