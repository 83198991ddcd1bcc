"""The real command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def cli_env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose data cache is not the user's."""
    return os.environ | {"MLE_GYM_DATA": str(tmp_path_factory.mktemp("data")), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="session")
def cli(cli_env: dict[str, str]) -> Cli:
    """Call ``mle-gym`` with arguments and return what it printed."""

    def call(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mle_gym", *map(str, arguments)]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, env=cli_env, timeout=120)

    return call
