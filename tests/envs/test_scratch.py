"""Temporary folders end with their process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from mle_gym.scratch import LOCK

HOLD = """
import sys
from mle_gym.scratch import scratch_folder
folder = scratch_folder("x")
(folder / "file").write_text("kept")
print(folder, flush=True)
sys.stdin.read()
"""


def start(place: Path, code: str = HOLD) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(place)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def end(process: subprocess.Popen[str]) -> None:
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_normal_end_leaves_nothing(tmp_path: Path) -> None:
    process, folder = start(tmp_path)
    assert folder.parent.parent == tmp_path
    assert (folder.stat().st_mode & 0o777, folder.parent.stat().st_mode & 0o777) == (0o700, 0o700)
    end(process)
    assert list(tmp_path.iterdir()) == []


def test_the_next_process_removes_what_a_killed_one_left_and_nothing_else(tmp_path: Path) -> None:
    living, kept = start(tmp_path)
    killed, left = start(tmp_path)
    killed.kill()
    killed.communicate()
    assert (left / "file").is_file()
    stranger = tmp_path / "mle_gym-0123456789ab"
    stranger.mkdir()
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / LOCK).touch()
    (tmp_path / "mle_gym-link").symlink_to(target)
    (tmp_path / "mle_gym-file").touch()
    young, old = tmp_path / "mle_gym-new-young", tmp_path / "mle_gym-new-old"
    young.mkdir()
    old.mkdir()
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    third, own = start(tmp_path)
    assert not left.parent.exists()
    assert not old.exists()
    assert (kept / "file").read_text() == "kept"
    assert own.is_dir()
    assert stranger.is_dir()  # it has no lock: nobody knows whose it is
    assert young.is_dir()
    assert (target / LOCK).is_file()
    assert (tmp_path / "mle_gym-link").is_symlink()
    assert (tmp_path / "mle_gym-file").is_file()
    end(living)
    end(third)
    assert not kept.parent.exists()


def test_a_forked_child_leaves_its_parents_folder_alone(tmp_path: Path) -> None:
    code = """
import os, sys
from mle_gym.scratch import scratch_folder
folder = scratch_folder("x")
child = os.fork()
if child == 0:
    assert scratch_folder("x").parent != folder.parent
    sys.exit(0)
os.waitpid(child, 0)
assert folder.is_dir()
print(folder, flush=True)
"""
    process, folder = start(tmp_path, code)
    end(process)
    assert not folder.parent.exists()
    assert list(tmp_path.iterdir()) == []
