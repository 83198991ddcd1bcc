"""Importing the trainers is cheap, and imports go one way only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import trainers.common

ROOT = Path(__file__).parents[2]


def test_the_package_and_its_commands_need_no_torch() -> None:
    code = "import trainers.common, trainers.commands, sys; print('torch' in sys.modules, 'gymnasium' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False", "False"]


def test_the_public_names_are_there() -> None:
    for name in trainers.common.__all__:
        assert getattr(trainers.common, name).__name__ == name


def test_the_environments_know_nothing_of_trainers() -> None:
    importing = [
        path.relative_to(ROOT)
        for path in (ROOT / "mle_gym").rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip().startswith(("import trainers", "from trainers", "import benchmarks", "from benchmarks"))
    ]
    assert importing == []
