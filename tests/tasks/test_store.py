"""The cache of prepared folders: complete or absent, built once, whatever happens to its builders."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mle_gym.tasks.store import MANIFEST, cached_folder, data_root, data_version
from mle_gym.tasks.task import TaskUnavailable

BUILDER = """
import os, sys, time
from pathlib import Path
from mle_gym.tasks.store import cached_folder

def build(folder):
    with open(sys.argv[2], "a") as log:
        log.write(f"{os.getpid()}\\n")
    (folder / "one").write_text("1")
    time.sleep(float(sys.argv[3]))
    (folder / "two").write_text("2")

folder = cached_folder(Path(sys.argv[1]), build)
assert {p.name for p in folder.iterdir()} == {"one", "two", "manifest.json"}
"""


def start(folder: Path, log: Path, seconds: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", BUILDER, str(folder), str(log), str(seconds)])


def test_many_processes_build_once(tmp_path: Path) -> None:
    folder, log = tmp_path / "data" / "set", tmp_path / "log"
    processes = [start(folder, log, 0.3) for _ in range(5)]
    assert [process.wait(60) for process in processes] == [0] * 5
    assert len(log.read_text().splitlines()) == 1
    assert sorted(p.name for p in folder.parent.iterdir()) == [".set.lock", "set"]


def test_a_killed_builder_leaves_no_part(tmp_path: Path) -> None:
    folder, log = tmp_path / "data" / "set", tmp_path / "log"
    victim = start(folder, log, 60)
    deadline = time.monotonic() + 30
    while not list(folder.parent.glob(".set.tmp-*/one")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(victim.pid, signal.SIGKILL)
    assert victim.wait(30) == -signal.SIGKILL
    assert not folder.exists()
    assert start(folder, log, 0).wait(60) == 0
    assert sorted(p.name for p in folder.parent.iterdir()) == [".set.lock", "set"]


def test_a_failing_builder_leaves_nothing_and_says_why(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "one").write_text("1")
        raise KeyError("no such column")

    with pytest.raises(KeyError, match="no such column"):
        cached_folder(tmp_path / "set", build)
    assert [p.name for p in tmp_path.iterdir()] == [".set.lock"]


def test_same_size_damage_is_seen(tmp_path: Path) -> None:
    built = []

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "one").write_text("1")

    folder = cached_folder(tmp_path / "set", build)
    version = data_version(folder)
    cached_folder(folder, build)
    assert len(built) == 1
    (folder / "one").write_text("7")
    os.utime(folder / "one", ns=(0, 0))
    cached_folder(folder, build)
    assert len(built) == 2
    assert (folder / "one").read_text() == "1"
    assert data_version(folder) == version


def test_the_version_follows_names_and_contents(tmp_path: Path) -> None:
    def version(name: str, text: str) -> str:
        folder = tmp_path / f"{name}-{text}"
        cached_folder(folder, lambda place: (place / name).write_text(text) and None)
        manifest = json.loads((folder / MANIFEST).read_text())
        assert list(manifest["files"]) == [name]
        return data_version(folder)

    assert len({version("a", "1"), version("a", "2"), version("b", "1")}) == 3


def test_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MLE_GYM_DATA", raising=False)
    assert data_root() == tmp_path / ".cache" / "mle_gym"
    monkeypatch.setenv("MLE_GYM_DATA", "~/elsewhere")
    assert data_root() == tmp_path / "elsewhere"
    assert data_root(tmp_path / "given") == tmp_path / "given"


def test_no_room(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TaskUnavailable, match=r"cannot be prepared in .*MLE_GYM_DATA"):
        cached_folder(tmp_path / "file" / "set", lambda folder: None)
