from __future__ import annotations

import subprocess
import sys

import pytest

import mle_gym

HEAVY = ("torch", "pandas", "sklearn", "scipy", "transformers", "rich", "tyro", "matplotlib", "jinja2")


def _modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    return set(done.stdout.split())


def test_import_is_light_and_registers() -> None:
    loaded = _modules_after("import mle_gym, gymnasium\nassert 'mle_gym/credit-default-v0' in gymnasium.registry")
    assert not loaded & set(HEAVY)
    assert not {"mle_gym.env", "mle_gym.pool", "mle_gym.prompts"} & loaded


def test_make_is_light() -> None:
    loaded = _modules_after("import gymnasium\nenv = gymnasium.make('mle_gym:mle_gym/credit-default-v0')")
    assert not loaded & set(HEAVY)
    assert "mle_gym.env" in loaded


def test_every_public_name_resolves() -> None:
    for name in mle_gym.__all__:
        assert getattr(mle_gym, name) is not None
    assert set(mle_gym.__all__) <= set(dir(mle_gym))


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Enviroment'"):
        mle_gym.Enviroment  # noqa: B018
