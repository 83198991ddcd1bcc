"""Downloads, with the real `kaggle` client against a local server that answers as Kaggle does."""

from __future__ import annotations

import socket
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import ClassVar

import pytest

from mle_gym.tasks.mlebench import download as module
from mle_gym.tasks.mlebench.download import download, require_room
from mle_gym.tasks.mlebench.prepare import ChecksumMismatch, prepare
from mle_gym.tasks.task import TaskUnavailable

NAME = "aerial-cactus-identification"


class Kaggle(BaseHTTPRequestHandler):
    status: ClassVar[int] = 200
    archive: ClassVar[bytes] = b""
    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.asked.append(self.path)
        if self.status != 200:
            self._send(self.status, b'{"code": %d, "message": "no"}' % self.status, "application/json")
            return
        self.send_response(302)
        self.send_header("Location", f"/files/{NAME}.zip")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        first = 0
        if wanted := self.headers.get("Range"):
            self.asked.append(wanted)
            first = int(wanted.removeprefix("bytes=").split("-")[0])
        self._send(206 if first else 200, self.archive[first:], "application/zip", first)

    def _send(self, status: int, body: bytes, kind: str, first: int = 0) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT")
        if status == 206:
            last = len(self.archive)
            self.send_header("Content-Range", f"bytes {first}-{last - 1}/{last}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


def _use(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Have the client take a server for Kaggle."""
    environment = pytest.importorskip("kagglesdk.kaggle_env")
    monkeypatch.setitem(environment._env_to_endpoint, environment.KaggleEnv.PROD, address)
    monkeypatch.setenv("KAGGLE_USERNAME", "somebody")
    monkeypatch.setenv("KAGGLE_KEY", "0" * 32)


@pytest.fixture
def kaggle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, prepare_cases: Path) -> Iterator[type[Kaggle]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Kaggle)
    _use(monkeypatch, f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(tmp_path / "config"))
    Kaggle.status, Kaggle.asked = 200, []
    Kaggle.archive = (prepare_cases / NAME / "raw.zip").read_bytes()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Kaggle
    server.shutdown()
    server.server_close()
    thread.join()


def test_downloads_and_prepares(kaggle: type[Kaggle], tmp_path: Path) -> None:
    with pytest.warns(ChecksumMismatch) as caught:
        folder = prepare(NAME, data_dir=tmp_path)
    assert any("public/train.csv has MD5" in str(warning.message) for warning in caught)
    assert (folder / "public" / "train.csv").is_file()
    assert (folder / "private" / "test.csv").is_file()
    assert sorted(path.name for path in (tmp_path / NAME).iterdir()) == [
        ".lock",
        f"{NAME}.zip",
        "differences.json",
        "prepared",
    ]
    asked = len(kaggle.asked)
    assert prepare(NAME, data_dir=tmp_path) == folder  # neither fetched nor built again
    assert len(kaggle.asked) == asked


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (401, "does not accept the credentials"),
        (403, f"accept its rules at https://www.kaggle.com/competitions/{NAME}/rules"),
        (404, "has no files of"),
        (429, "wait some minutes"),
        (500, "HTTP 500"),
    ],
)
def test_refusals(kaggle: type[Kaggle], tmp_path: Path, status: int, sentence: str) -> None:
    kaggle.status = status
    with pytest.raises(TaskUnavailable, match=sentence):
        prepare(NAME, data_dir=tmp_path)
    assert [path.name for path in (tmp_path / NAME).iterdir()] == [".lock"]


def test_no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    _use(monkeypatch, f"http://127.0.0.1:{port}")  # nothing listens there any more
    with pytest.raises(TaskUnavailable, match="check the network"):
        download(NAME, tmp_path, 0.03)


def test_credentials_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("kagglesdk")
    for name in ("KAGGLE_USERNAME", "KAGGLE_KEY", "KAGGLE_API_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(tmp_path))
    with pytest.raises(TaskUnavailable, match=r"credentials are missing; make an API token at .*kaggle.json"):
        download(NAME, tmp_path, 0.03)


def test_no_room(tmp_path: Path) -> None:
    with pytest.raises(TaskUnavailable, match=r"needs about 3000000\.0 GB"):
        require_room(NAME, tmp_path, 10**15)


def test_raw_folder_stays_as_it_is(tmp_path: Path, prepare_cases: Path) -> None:
    raw = tmp_path / "raw"
    with zipfile.ZipFile(prepare_cases / NAME / "raw.zip") as archive:
        archive.extractall(raw)
    before = {path: path.read_bytes() for path in raw.rglob("*") if path.is_file()}
    with pytest.warns(ChecksumMismatch):
        folder = prepare(NAME, raw, tmp_path / "data")
    assert {path: path.read_bytes() for path in raw.rglob("*") if path.is_file()} == before
    assert not any(path.is_symlink() for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("files", "sentence"),
    [({}, "lacks train.zip"), ({"train.zip": b"x", "train.csv": b"x"}, "does not hold Kaggle's files")],
)
def test_wrong_raw_leaves_nothing(tmp_path: Path, files: dict[str, bytes], sentence: str) -> None:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    (tmp_path / "raw.zip").write_bytes(buffer.getvalue())
    with pytest.raises(TaskUnavailable, match=sentence):
        prepare(NAME, tmp_path / "raw.zip", tmp_path / "data")
    assert [path.name for path in (tmp_path / "data" / NAME).iterdir()] == [".lock"]


def test_raw_that_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(TaskUnavailable, match="does not exist"):
        prepare(NAME, tmp_path / "nowhere", tmp_path)
    (tmp_path / "text").write_text("x")
    with pytest.raises(TaskUnavailable, match="neither a folder nor a zip file"):
        prepare(NAME, tmp_path / "text", tmp_path)
    with pytest.raises(TaskUnavailable, match="need no preparation"):
        prepare("credit-default", data_dir=tmp_path)


def test_module_names_kaggle_only_when_called() -> None:
    assert not hasattr(module, "KaggleApi")
