"""Frames between the caller and a supervisor: a length, then JSON."""

from __future__ import annotations

import json
import socket
import struct
import sys
from typing import Any

__all__ = ["PACKET", "decode", "receive", "send"]

# A packet socket that reports the end of its peer; elsewhere the lifeline socket alone must do.
PACKET = socket.SOCK_SEQPACKET if sys.platform.startswith("linux") else socket.SOCK_DGRAM


def send(sock: socket.socket, message: dict[str, Any]) -> None:
    """Send one frame."""
    data = json.dumps(message).encode("utf-8", errors="surrogatepass")
    sock.sendall(struct.pack("!I", len(data)) + data)


def receive(sock: socket.socket) -> dict[str, Any] | None:
    """Receive one frame; None at the end of the stream."""
    header = _exactly(sock, 4)
    if header is None:
        return None
    data = _exactly(sock, struct.unpack("!I", header)[0])
    return None if data is None else decode(data)


def decode(data: bytes) -> dict[str, Any]:
    """Parse the JSON object of one frame or packet."""
    value = json.loads(data.decode("utf-8", errors="surrogatepass"))
    if not isinstance(value, dict):
        raise ValueError("a frame is not an object")
    return value


def _exactly(sock: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        chunk = sock.recv(min(size - len(data), 1 << 20))
        if not chunk:
            return None
        data += chunk
    return bytes(data)
