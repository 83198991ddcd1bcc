"""Checked cases of MLE-bench's graders and preparers, unpacked once."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from mle_gym.tasks.mlebench.catalogue import catalogue

CASES = Path(__file__).parent / "cases"
COMPETITIONS = sorted(catalogue())


def _unpack(name: str, factory: pytest.TempPathFactory) -> Path:
    folder = factory.mktemp(name)
    with tarfile.open(CASES / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="session")
def grading_cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _unpack("grading", tmp_path_factory)


@pytest.fixture(scope="session")
def prepare_cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _unpack("prepare", tmp_path_factory)
