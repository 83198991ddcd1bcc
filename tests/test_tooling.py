"""The commands that contributors and continuous integration run."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def make(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run ``make`` and return what it printed."""
    return subprocess.run(["make", *arguments], capture_output=True, text=True, cwd=cwd, timeout=60)


def test_help_names_every_target() -> None:
    printed = make().stdout
    for target in ("setup", "demo", "test", "test-all", "lint", "clean"):
        assert f"\n{target} " in f"\n{printed}"


def test_demo_passes_the_seed_on() -> None:
    # An own stamp: the question is not whether something is installed.
    printed = make("-n", "demo", "SEED=5", "STAMP=Makefile").stdout
    assert "mle-gym train --config recipes/demo.toml --seed 5 --run runs/demo-5-" in printed
    assert "mle-gym report runs/demo-5-" in printed


def test_an_old_python_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    shutil.copy(ROOT / "Makefile", tmp_path / "Makefile")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "constraints.txt").touch()
    result = make("setup", f"PYTHON={old}", cwd=tmp_path)
    assert result.returncode != 0
    assert "older than 3.11" in result.stderr
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("failing", ["lint", "test", "test-all", None])
def test_ci_fails_with_its_first_failure(tmp_path: Path, failing: str | None) -> None:
    (tmp_path / ".ci").mkdir()
    script = shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    assert os.stat(ROOT / ".ci" / "run").st_mode & stat.S_IXUSR
    targets = ("lint", "test", "test-all")
    rules = [f"{name}:\n\t@echo ran {name}; {'false' if name == failing else 'true'}" for name in targets]
    (tmp_path / "Makefile").write_text("\n".join(rules) + "\n", encoding="utf-8")
    result = subprocess.run(["bash", script], capture_output=True, text=True, cwd="/", timeout=60)
    ran = [line.removeprefix("ran ") for line in result.stdout.splitlines() if line.startswith("ran ")]
    expected = targets if failing is None else targets[: targets.index(failing) + 1]
    assert ran == list(expected), "each exactly once, in this order, and nothing after a failure"
    assert (result.returncode == 0) == (failing is None)
