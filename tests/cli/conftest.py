"""The command, in this process (fast) and in a process of its own (real)."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from mle_gym.cli import main


@dataclass(frozen=True)
class Result:
    """What a call printed, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


Cli = Callable[..., Result]


@pytest.fixture(scope="session")
def cli_env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose data cache is not the user's."""
    return {"MLE_GYM_DATA": str(tmp_path_factory.mktemp("data")), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="session")
def cli(cli_env: dict[str, str]) -> Cli:
    """Call ``mle-gym`` with arguments and return what it printed."""

    def call(*arguments: str | Path, stdin: str = "") -> Result:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            for name, value in cli_env.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            code = main([str(argument) for argument in arguments])
        return Result(code, out.getvalue(), err.getvalue())

    return call


@pytest.fixture(scope="session")
def process_env(cli_env: dict[str, str]) -> dict[str, str]:
    """The whole environment for a process of its own."""
    return os.environ | cli_env
