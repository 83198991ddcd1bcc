"""One sandbox of each kind for the whole session, and a short way to run a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from mle_gym.sandbox import Execution, Limits, LocalSandbox, Program, SandboxUnavailable

RunProgram = Callable[..., Execution]


def _make(**options: Any) -> LocalSandbox:
    try:
        return LocalSandbox(**options)
    except SandboxUnavailable as error:
        pytest.skip(f"this machine cannot isolate programs: {error}")


@pytest.fixture(scope="session")
def warm_sandbox() -> Iterator[LocalSandbox]:
    with _make() as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def cold_sandbox() -> Iterator[LocalSandbox]:
    with _make(warm=False) as sandbox:
        yield sandbox


@pytest.fixture(params=["warm", "cold"])
def sandbox(request: pytest.FixtureRequest) -> LocalSandbox:
    return request.getfixturevalue(f"{request.param}_sandbox")


def runner(sandbox: LocalSandbox, folder: Path) -> RunProgram:
    folder.mkdir(exist_ok=True)

    def run(source: str, **options: Any) -> Execution:
        program = {k: options.pop(k) for k in ("hooks", "context", "seed", "env") if k in options}
        bounds = {"time": 60.0, "memory_mb": 1024, "disk_mb": 64, "cores": 0}
        names = ("time", "memory_mb", "disk_mb", "output_kb", "processes", "cores", "gpus")
        bounds.update({k: options.pop(k) for k in names if k in options})
        result = sandbox.run(
            Program(dedent(source), **program),
            files=options.pop("files", {}),
            limits=Limits(**bounds),
            artifacts_dir=folder,
            **options,
        )
        print(result)  # pytest shows it when the test fails
        return result

    return run


@pytest.fixture
def run(sandbox: LocalSandbox, tmp_path: Path) -> RunProgram:
    """Run a program in the warm and in the cold sandbox."""
    return runner(sandbox, tmp_path / "artifacts")


@pytest.fixture
def run_warm(warm_sandbox: LocalSandbox, tmp_path: Path) -> RunProgram:
    return runner(warm_sandbox, tmp_path / "artifacts")


@pytest.fixture
def run_cold(cold_sandbox: LocalSandbox, tmp_path: Path) -> RunProgram:
    return runner(cold_sandbox, tmp_path / "artifacts")
