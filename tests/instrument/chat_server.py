"""An OpenAI-compatible server on the loopback interface whose answers a test chooses."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, dict[str, str], bytes]


@dataclass
class ChatServer:
    """What it is to say, and what it was asked."""

    reply: Callable[[str], str | Reply]
    """From the prompt: the answer's text, or a whole reply (status, headers, body)."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    drip: float = 0.0
    """Seconds between the bytes of a reply."""
    base_url: str = ""


def completion(text: object) -> bytes:
    return json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}).encode()


def program_in(prompt: str) -> str:
    """The program that a prompt shows."""
    return prompt.rpartition("```python\n")[2].rpartition("\n```")[0]


@contextmanager
def serve(reply: Callable[[str], str | Reply]) -> Iterator[ChatServer]:
    state = ChatServer(reply)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(200, {}, b'{"object": "list", "data": [{"id": "m"}]}')

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append({"path": self.path, **request})
            state.keys.append(self.headers.get("Authorization"))
            answer = state.reply(request["messages"][0]["content"])
            self._send(*((200, {}, completion(answer)) if isinstance(answer, str) else answer))

        def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), "Connection": "close", **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for piece in [body[i : i + 1] for i in range(len(body))] if state.drip else [body]:
                    self.wfile.write(piece)
                    time.sleep(state.drip)
            except OSError:
                return  # The client has had enough.

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
