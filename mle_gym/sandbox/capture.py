"""Head and tail of what a program prints."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Capture"]

_HEAD, _TAIL = 32 << 10, 96 << 10


@dataclass
class Capture:
    """Head and tail of one stream."""

    fd: int
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0

    def add(self, data: bytes) -> None:
        """Keep what fits."""
        self.total += len(data)
        room = _HEAD - len(self.head)
        self.head += data[: max(room, 0)]
        self.tail += data[max(room, 0) :]
        if len(self.tail) > 2 * _TAIL:
            del self.tail[:-_TAIL]

    def text(self) -> str:
        """What was kept, with a line that says how much was not."""
        tail = bytes(self.tail[-_TAIL:])
        gap = self.total - len(self.head) - len(tail)
        middle = f"\n... [{gap} bytes left out] ...\n".encode() if gap else b""
        return (bytes(self.head) + middle + tail).decode("utf-8", errors="replace")
