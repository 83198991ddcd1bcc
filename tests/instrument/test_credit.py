from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_gym.instrument import (
    CREDIT_PER_MILESTONE,
    MILESTONES,
    Instrumenter,
    credit,
    fitted_estimators,
    make_instrumenter,
    milestone_flags,
)
from mle_gym.sandbox.base import Reached


def reached(*names: str) -> list[Reached]:
    return [Reached(name, float(i), "interpreter") for i, name in enumerate(names)]


def test_each_milestone_counts_once():
    assert credit([]) == 0.0
    assert credit(reached("loaded_data", "loaded_data", "estimator:Ridge", "hook_error:x:KeyError:1", "unknown")) == 0.1
    for count in range(8):
        for names in itertools.combinations(MILESTONES, count):
            assert credit(reached(*names)) == count / 10
    assert CREDIT_PER_MILESTONE == 0.1


@given(st.sets(st.sampled_from(MILESTONES)))
def test_flags_follow_the_order_of_milestones(names):
    flags = milestone_flags(reached(*names))
    assert flags.shape == (7,)
    assert flags.dtype == np.bool_
    assert {name for name, flag in zip(MILESTONES, flags, strict=True) if flag} == names


def test_fitted_estimators():
    names = ("estimator:Ridge", "trained_model", "estimator:lightgbm.train", "estimator:Ridge", "estimator:é")
    assert fitted_estimators(reached(*names)) == ("Ridge", "lightgbm.train", "é")
    assert fitted_estimators(reached("trained_model")) == ()
    hostile = ("estimator:", "estimator:a b", "estimator:<b>", "estimator:a\n", "estimator:a..b")
    assert fitted_estimators(reached(*hostile)) == ()
    assert len(fitted_estimators(reached(*(f"estimator:M{i}" for i in range(20))))) == 8


def test_make_instrumenter():
    for name in ("probe", "none"):
        assert make_instrumenter(name).name == name
        assert isinstance(make_instrumenter(name), Instrumenter)
    assert make_instrumenter("llm", generate=str).name == "llm"
    with pytest.raises(ValueError, match="did you mean 'probe'"):
        make_instrumenter("prob")
    with pytest.raises(ValueError, match="does not take these options"):
        make_instrumenter("probe", model="x")


def test_plugin(tmp_path):
    """A package with the entry point is found; one that takes a built-in name is not used."""
    (tmp_path / "mine.py").write_text(
        "from mle_gym.instrument import Instrumenter\nfrom mle_gym.sandbox.base import Program\n"
        "class Mine(Instrumenter):\n    name = 'mine'\n    def instrument(self, source, data): return Program(source)\n"
    )
    info = tmp_path / "mine-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[mle_gym.instrumenters]\nmine = mine:Mine\nprobe = mine:Mine\nbad = builtins:dict\n"
    )
    code = (
        "from mle_gym.instrument import make_instrumenter as make\nprint(make('mine').name, make('probe').name)\n"
        "try:\n    make('bad')\nexcept ValueError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(tmp_path)}
    )
    assert done.stdout.splitlines() == ["mine probe", "instrumenter='bad' gives a dict, not an Instrumenter."]


def test_importing_the_package_is_cheap():
    code = "import sys, mle_gym; old = set(sys.modules); import mle_gym.instrument; print(*(set(sys.modules) - old))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name for name in done.stdout.split() if not name.startswith("mle_gym.")} <= {"difflib"}
