"""Every stand-in: a sound task, with something to learn, that an environment can be made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from mle_gym.tasks.registry import get_task
from mle_gym.testing import check_task

from .conftest import COMPETITIONS

FEW = 8 * 2**20
SAMPLE = {
    "aerial-cactus-identification",
    "billion-word-imputation",
    "detecting-insults-in-social-commentary",
    "mlsp-2013-birds",
    "nomad2018-predict-transparent-conductors",
    "osic-pulmonary-fibrosis-progression",
    "spooky-author-identification",
    "tgs-salt-identification-challenge",
}
EVERY = [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.slow) for name in COMPETITIONS]


@pytest.mark.parametrize("name", EVERY)
def test_sound(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.getbasetemp() / "stand-ins"
    task = get_task(name)
    data = task.load(data="synthetic", size="tiny", data_dir=root)
    assert sum(path.stat().st_size for path in data.public_dir.rglob("*") if path.is_file()) < FEW
    checks = check_task(task, data_dir=root, size="tiny")
    assert "order of scores" in checks


def test_salt_decides_the_answers(tmp_path: Path) -> None:
    answers = []
    for root in (tmp_path / "a", tmp_path / "b"):
        data = get_task("aerial-cactus-identification").load(data="synthetic", size="tiny", data_dir=root)
        answers.append((root / "stand-in" / "salt").read_text() + (data.private_dir / "test.csv").read_text())  # type: ignore[attr-defined]
    assert answers[0] != answers[1]
