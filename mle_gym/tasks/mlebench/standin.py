"""Stand-in data: invented by a competition's own generator in Kaggle's layout, then prepared like the real ones."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from mle_gym.tasks.mlebench.catalogue import Facts
from mle_gym.tasks.mlebench.competition import Size, competition_module
from mle_gym.tasks.store import cached_folder, data_root
from mle_gym.tasks.task import TaskUnavailable

__all__ = ["stand_in_folder"]

_SALT = "salt"


@cache
def _code_digest(module: str) -> str:
    """Digest of the code that invents and prepares: data made by other code are never taken for this code's."""
    whole = hashlib.sha256()
    package = files("mle_gym.tasks.mlebench")
    shared = sorted(file.name for file in package.iterdir() if file.name.endswith(".py"))
    for name in (f"competitions/{module}.py", *shared):
        whole.update(package.joinpath(name).read_bytes())
    return whole.hexdigest()


def _salt(root: Path) -> str:
    """A secret of this data folder, so that no program can invent the answers a second time."""
    path = root / "stand-in" / _SALT
    if path.is_file():
        return _read_salt(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        fd, temporary = tempfile.mkstemp(dir=path.parent)
        with open(fd, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(16))
        try:
            os.link(temporary, path)  # fails where the file exists, and is never seen half-written
        finally:
            os.unlink(temporary)
    return _read_salt(path)


def _read_salt(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except UnicodeDecodeError:
        raise TaskUnavailable(f"{path} is damaged; delete it, and stand-in data are made anew.") from None


def stand_in_folder(name: str, facts: Facts, size: Size, data_dir: Path | None = None) -> Path:
    """Return the folder with ``public`` and ``private``, making it on first use.

    Args:
        name: The competition's slug.
        facts: Its entry of the catalogue.
        size: ``tiny`` for tests, ``small`` to learn on.
        data_dir: Where prepared data live, instead of the default place.

    Raises:
        TaskUnavailable: The data folder cannot be written.
    """
    root = data_root(data_dir)
    try:
        salt = _salt(root)
    except OSError as error:
        raise TaskUnavailable(
            f"Data cannot be prepared in {root} ({error.strerror or error}); set MLE_GYM_DATA to a writable folder."
        ) from error
    key = f"{name}/{size}/{_code_digest(facts.module)}/{salt}"
    place = root / "stand-in" / name / f"{size}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"

    def build(folder: Path) -> None:
        module = competition_module(facts.module)
        seed = np.frombuffer(hashlib.sha256(f"{salt}/{name}/{size}".encode()).digest(), dtype=np.uint32)
        public, private = folder / "public", folder / "private"
        raw = folder / "raw"
        for part in (raw, public, private):
            part.mkdir()
        module.stand_in(raw, np.random.default_rng(seed), size)
        module.prepare(raw, public, private)
        shutil.rmtree(raw)
        private.chmod(0o700)
        for path in private.rglob("*"):
            if path.is_file():
                path.chmod(0o600)

    return cached_folder(place, build)
