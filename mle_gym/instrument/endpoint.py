"""A language model behind an OpenAI-compatible HTTP server, with nothing but the standard library."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

from mle_gym.instrument.base import InstrumenterFailed

__all__ = ["ChatEndpoint"]

LARGEST_REPLY = 4 * 2**20
"""Bytes; a longer reply is a fault of the server."""
_DECLINED = frozenset((400, 413, 422))
"""The server is well but does not take this prompt, for example because it is too long."""
_FINAL = frozenset((401, 403, 404, 405))
_LONGEST_PAUSE = 10.0


class ChatEndpoint:
    """Answers a prompt through ``POST {base_url}/chat/completions``, greedily.

    Connection errors, time-outs, malformed replies and the statuses 408, 429 and 5xx are tried again with growing
    pauses. Proxies named in the environment are not used.

    Args:
        base_url: For example ``http://127.0.0.1:8000/v1``.
        model: The model's name on that server.
        api_key_env: Environment variable with the key; no key is sent where it is not set.
        timeout: Seconds for one attempt, from the connection to the last byte.
        retries: Attempts after the first one.
        max_tokens: Longest answer.
        temperature: 0 is greedy.

    Raises:
        ValueError: An argument is out of range.
    """

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        api_key_env: str = "OPENAI_API_KEY",
        timeout: float = 120.0,
        retries: int = 3,
        max_tokens: int = 4096,
        temperature: float = 0.0,
    ) -> None:
        try:
            parts = urlsplit(base_url)
            self._port = parts.port
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"base_url={base_url!r} is no URL: {error}.") from error
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"base_url={base_url!r} must look like http://127.0.0.1:8000/v1.")
        if parts.username or parts.password:
            raise ValueError(f"base_url must not hold a password; put the key into ${api_key_env}.")
        if not (timeout > 0 and retries >= 0 and max_tokens >= 1 and temperature >= 0):
            raise ValueError(
                f"timeout={timeout}, max_tokens={max_tokens} must be above 0, retries={retries} and "
                f"temperature={temperature} not below."
            )
        self.base_url = base_url.rstrip("/")
        self.model = model
        self.api_key_env = api_key_env
        self.timeout = float(timeout)
        self.retries = int(retries)
        self.max_tokens = int(max_tokens)
        self.temperature = float(temperature)
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._path = parts.path.rstrip("/")

    @property
    def identity(self) -> str:
        """Names the model and how it is asked."""
        return f"openai {self.base_url} {self.model} {self.max_tokens} {self.temperature}"

    def check(self) -> None:
        """See whether the server is there.

        Raises:
            ValueError: Nobody answers, or the key is refused; one sentence.
        """
        try:
            status, _, _ = self._request("GET", "/models", None)
        except (OSError, http.client.HTTPException) as error:
            raise ValueError(
                f"The instrumenter's server {self.base_url} cannot be reached ({_reason(error)}); start it or correct "
                "base_url."
            ) from error
        if status in (401, 403):
            raise ValueError(
                f"The instrumenter's server {self.base_url} refuses the key (status {status}); set ${self.api_key_env}."
            )

    def __call__(self, prompt: str) -> str:
        """Return the model's answer; "" where the server does not take this prompt.

        Raises:
            InstrumenterFailed: The server cannot be reached or does not answer as it should, after all attempts.
        """
        body = json.dumps(
            {
                "model": self.model,
                "messages": [{"role": "user", "content": prompt}],
                "temperature": self.temperature,
                "max_tokens": self.max_tokens,
                "stream": False,
            }
        ).encode()
        problem = ""
        for attempt in range(self.retries + 1):
            pause = min(0.25 * 2**attempt, _LONGEST_PAUSE)
            try:
                status, headers, reply = self._request("POST", "/chat/completions", body)
            except (OSError, http.client.HTTPException) as error:
                problem = _reason(error)
            else:
                if status == 200:
                    text = _content(reply)
                    if text is not None:
                        return text
                    problem = "the reply is no chat completion"
                elif status in _DECLINED:
                    return ""
                else:
                    problem = f"status {status}: {_message(reply)}".rstrip(": ")
                    if status in _FINAL:
                        break
                    pause = min(max(pause, _seconds(headers.get("retry-after"))), _LONGEST_PAUSE)
            if attempt < self.retries:
                time.sleep(pause)
        raise InstrumenterFailed(
            f"The instrumenter's server {self.base_url} gave no answer after {attempt + 1} attempts ({problem}); check "
            f"the server and the model name {self.model!r}."
        )

    def _request(self, method: str, path: str, body: bytes | None) -> tuple[int, dict[str, str], bytes]:
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if key := os.environ.get(self.api_key_env):
            headers["Authorization"] = f"Bearer {key}"
        end = time.monotonic() + self.timeout
        connection: http.client.HTTPConnection
        if self._secure:
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=self.timeout, context=context)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self.timeout)
        try:
            connection.request(method, self._path + path, body=body, headers=headers)
            sock = connection.sock
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, _read(response, sock, end)
        finally:
            connection.close()


def _read(response: http.client.HTTPResponse, sock: Any, end: float) -> bytes:
    """Read all of a reply; a server that sends a byte now and then does not hold the caller beyond ``end``."""
    parts: list[bytes] = []
    size = 0
    while True:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        if sock is not None and sock.fileno() >= 0:
            sock.settimeout(left)
        part = response.read1(65536)
        if not part:
            return b"".join(parts)
        size += len(part)
        if size > LARGEST_REPLY:
            raise http.client.HTTPException(f"the reply is longer than {LARGEST_REPLY} bytes")
        parts.append(part)


def _content(reply: bytes) -> str | None:
    """The answer's text; None where the reply is no chat completion."""
    try:
        choice = json.loads(reply)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    if choice is None:
        return ""
    return choice if isinstance(choice, str) else None


def _message(reply: bytes) -> str:
    """What a server says about an error, on one line."""
    try:
        document = json.loads(reply)
        found = document.get("error", document.get("message", document)) if isinstance(document, dict) else document
        text = str(found.get("message", found)) if isinstance(found, dict) else str(found)
    except (ValueError, RecursionError):
        text = reply[:200].decode("utf-8", "replace")
    return " ".join(text.split())[:120].rstrip(".")


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:120].rstrip(".")


def _seconds(value: str | None) -> float:
    try:
        return max(0.0, float(value or 0))
    except ValueError:
        return 0.0  # A date: the usual pause will do.
