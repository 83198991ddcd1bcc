"""TFRecord files of ``tf.train.Example`` messages, read and written without TensorFlow.

A file is a sequence of records, each framed as: length (uint64, little-endian), masked CRC-32C of the length, payload,
masked CRC-32C of the payload. A payload is a protocol buffer: features by name, each a list of bytes, floats or ints.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import cast

__all__ = ["Feature", "crc32c", "image_names", "read_examples", "write_examples"]

Feature = Sequence[bytes] | Sequence[float] | Sequence[int]
"""A feature's values, all of one type."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@cache
def _table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of data, as an unsigned 32-bit number."""
    table, value = _table(), 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    """CRC of data, rotated and offset so that a CRC of data that hold CRCs stays useful."""
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers are written as their two's complement
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(payload)) + payload


def _fields(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield (field number, wire type, payload); a varint's payload is its own encoding."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if kind == _BYTES:
            length, at = _read_varint(data, at)
            end = at + length
        elif kind == _VARINT:
            _, end = _read_varint(data, at)
        elif kind in (_FIXED32, _FIXED64):
            end = at + (4 if kind == _FIXED32 else 8)
        else:
            raise ValueError(f"wire type {kind} is unknown")
        if end > len(data):
            raise ValueError("a field reaches past the end of its message")
        yield tag >> 3, kind, data[at:end]
        at = end


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _ints(data: bytes) -> list[int]:
    values, at = [], 0
    while at < len(data):
        value, at = _read_varint(data, at)
        values.append(_signed(value))
    return values


def _parse_feature(data: bytes) -> Feature:
    for kind, _, values in _fields(data):
        parts = [payload for _, _, payload in _fields(values)]
        if kind == 1:
            return parts
        if kind == 2:
            joined = b"".join(parts)
            return list(struct.unpack(f"<{len(joined) // 4}f", joined))
        return [value for part in parts for value in _ints(part)]
    return []


def _parse_example(data: bytes, wanted: frozenset[str] | None) -> dict[str, Feature]:
    found: dict[str, Feature] = {}
    for _, _, features in _fields(data):
        for _, _, entry in _fields(features):
            parts = {number: payload for number, _, payload in _fields(entry)}
            name = parts.get(1, b"").decode()
            if wanted is None or name in wanted:
                found[name] = _parse_feature(parts.get(2, b""))
    return found


def _encode_feature(values: Feature) -> bytes:
    if not values:
        return b""
    if isinstance(values[0], bytes):
        return _field(1, b"".join(_field(1, value) for value in cast(Sequence[bytes], values)))
    if any(isinstance(value, float) for value in values):
        return _field(2, _field(1, struct.pack(f"<{len(values)}f", *values)))
    return _field(3, _field(1, b"".join(_varint(int(value)) for value in values)))


def read_examples(
    path: Path, names: Iterable[str] | None = None, *, verify: bool = False
) -> Iterator[dict[str, Feature]]:
    """Yield the examples of a file, one at a time.

    Args:
        path: The file.
        names: Features to return, by default all.
        verify: Whether to compute the checksums of payloads, at about 10 MB/s; those of lengths always are.

    Raises:
        ValueError: The file is cut short or damaged; the message names the record, counted from 1.
    """
    wanted = None if names is None else frozenset(names)
    with path.open("rb") as file:
        number = 0
        while head := file.read(12):
            number += 1
            if len(head) < 12 or _masked(head[:8]) != head[8:]:
                raise ValueError(f"{path.name}, record {number}: its length is damaged; fetch the file anew.")
            (length,) = struct.unpack("<Q", head[:8])
            body = file.read(length + 4)
            if len(body) < length + 4:
                raise ValueError(f"{path.name}, record {number}: the file ends inside of it; fetch the file anew.")
            payload, crc = body[:length], body[length:]
            if verify and _masked(payload) != crc:
                raise ValueError(f"{path.name}, record {number}: its checksum is wrong; fetch the file anew.")
            try:
                yield _parse_example(payload, wanted)
            except (ValueError, IndexError, struct.error) as error:
                raise ValueError(f"{path.name}, record {number}: not a tf.train.Example ({error}).") from error


def image_names(paths: Iterable[Path]) -> set[str]:
    """Return the values of the feature ``image_name`` in all records of some files.

    Raises:
        ValueError: A file is damaged, or a record has no such feature.
    """
    names: set[str] = set()
    for path in paths:
        for number, example in enumerate(read_examples(path, ["image_name"]), start=1):
            values = example.get("image_name", ())
            if len(values) != 1 or not isinstance(values[0], bytes):
                raise ValueError(f"{path.name}, record {number}: it has no image_name; fetch the file anew.")
            names.add(values[0].decode())
    return names


def write_examples(path: Path, examples: Iterable[Mapping[str, Feature]]) -> None:
    """Write examples to a file, making its folder; features are written in the order of their names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for example in examples:
            entries = (
                _field(1, _field(1, name.encode()) + _field(2, _encode_feature(example[name])))
                for name in sorted(example)
            )
            payload = _field(1, b"".join(entries))
            length = struct.pack("<Q", len(payload))
            file.write(length + _masked(length) + payload + _masked(payload))
