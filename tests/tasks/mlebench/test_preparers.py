"""Every preparer against checked cases: the same files as MLE-bench's, byte for byte."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from mle_gym.tasks.mlebench.catalogue import catalogue
from mle_gym.tasks.mlebench.competition import competition_module

from .conftest import CASES, COMPETITIONS

_FREESOUND = "FSDKaggle2019.meta.zip"


def _digest(path: Path) -> str | dict[str, str]:
    """Digest of a file; of an archive, whose bytes carry times, those of its members."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if not name.endswith("/")]
            return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in members}
    if path.suffix == ".7z":
        import py7zr

        with py7zr.SevenZipFile(path) as archive:
            factory = py7zr.io.BytesIOFactory(1 << 30)
            archive.extractall(factory=factory)
            return {name: hashlib.sha256(file.read()).hexdigest() for name, file in factory.products.items()}
    return hashlib.sha256(path.read_bytes()).hexdigest()


_LARGE = ("alaska2-image-steganalysis",)
EVERY = [pytest.param(name, marks=pytest.mark.slow) if name in _LARGE else name for name in COMPETITIONS]


@pytest.mark.parametrize("name", EVERY)
def test_same_files_as_mle_bench(name: str, prepare_cases: Path, tmp_path: Path) -> None:
    if not (prepare_cases / name).exists():
        pytest.skip("its raw folder is too large for a fixture; the test of its stand-in prepares one")
    raw, public, private = tmp_path / "raw", tmp_path / "public", tmp_path / "private"
    for folder in (raw, public, private):
        folder.mkdir()
    with zipfile.ZipFile(prepare_cases / name / "raw.zip") as archive:
        archive.extractall(raw)
    if name == "freesound-audio-tagging-2019":  # its labels were published elsewhere, and are fetched if not here
        shutil.copy(CASES / _FREESOUND, raw)
    facts = catalogue()[name]
    competition_module(facts.module).prepare(raw, public, private)
    for file in {facts.answers_file, facts.gold_file, facts.sample_file}:
        assert (tmp_path / file).is_file(), f"{file} was not made"
    if not (prepare_cases / name / "expected.json").exists():
        return
    expected = json.loads((prepare_cases / name / "expected.json").read_text())
    made = {
        path.relative_to(tmp_path).as_posix()
        for folder in (public, private)
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert made == set(expected)
    assert {file: _digest(tmp_path / file) for file in made} == expected
