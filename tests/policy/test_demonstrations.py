"""The grammar's programs, the file of demonstrations, and consistent renaming."""

from __future__ import annotations

import gzip
import json
import random
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mle_gym  # noqa: F401  (registers the environments)
from mle_gym.response import Response
from mle_gym.survey import survey
from mle_gym.tasks import get_task, list_tasks
from trainers.sft import demonstrations as demos
from trainers.sft.estimators import FAMILIES, family_of
from trainers.sft.grammar import Grammar
from trainers.sft.renaming import Renaming, draw_renaming

OFFLINE = sorted(task.name for task in list_tasks() if "offline" in task.tags)


def grammar(name: str) -> Grammar:
    task = get_task(name)
    return Grammar(task, task.load())


@pytest.mark.parametrize("name", OFFLINE)
def test_drafts_are_whole_answers(name: str) -> None:
    draw = random.Random(1)
    made = grammar(name)
    families = set()
    for _ in range(60):
        draft = made.draw(draw)
        response = Response.parse(draft.response)
        assert response.plan == draft.plan
        assert response.program == draft.program
        compile(draft.program, name, "exec")
        assert family_of(draft.program) == draft.family
        assert "submission.csv" in draft.program
        families.add(draft.family)
    assert len(families) >= 5


def test_drafts_follow_the_seed() -> None:
    made = grammar("job-runtime")
    first, second = ([made.draw(random.Random(s)).response for _ in range(1)] for s in (3, 3))
    assert first == second
    assert len({made.draw(random.Random(s)).response for s in range(40)}) > 35


def test_every_family_has_a_real_estimator() -> None:
    import importlib

    for estimator in FAMILIES:
        for name in filter(None, (estimator.classifier, estimator.regressor)):
            made = getattr(importlib.import_module(estimator.module), name)
            assert set(estimator.options) <= set(made().get_params())
            if name == estimator.classifier:
                assert hasattr(made(), "predict_proba" if estimator.probabilities else "decision_function")


def test_family_of_unknown_programs() -> None:
    assert family_of("print(1)") == "other"
    assert family_of("model = make_pipeline(StandardScaler(), SVC(C=1.0))") == "support vectors"


def test_file_round_trip_and_bad_files(tmp_path: Path) -> None:
    some = [demos.Demonstration("mle_gym/x-v0", "Plän.", "print('→')\n", "ridge", 0.5, 0.1)]
    path = tmp_path / "d.jsonl.gz"
    demos.save(some, path)
    first = path.read_bytes()
    assert demos.load(path) == some
    demos.save(some, path)
    assert path.read_bytes() == first
    path.write_bytes(gzip.compress(b'{"plan": 1}\n'))
    with pytest.raises(ValueError, match="is not a file of demonstrations"):
        demos.load(path)
    with pytest.raises(FileNotFoundError, match="There are no demonstrations at"):
        demos.load(tmp_path / "none")


def test_shipped_demonstrations_are_sound() -> None:
    shipped = demos.load()
    counts = pd.Series([d.task.removeprefix("mle_gym/").removesuffix("-v0") for d in shipped]).value_counts().to_dict()
    assert counts == demos.TASKS
    assert "credit-default" not in counts
    assert len({(d.task, d.response) for d in shipped}) == len(shipped)
    for d in shipped:
        compile(d.program, d.task, "exec")
        assert np.isfinite(d.score)
        assert 0 < d.duration <= 6
        assert family_of(d.program) == d.family
    assert "credit" not in gzip.decompress(demos.SHIPPED.read_bytes()).decode().lower()


@pytest.mark.slow
def test_shipped_scores_are_earned_again() -> None:
    """Programs without randomness earn the very score that was recorded."""
    steady = ("discriminant analysis", "naive Bayes", "linear regression", "ridge")
    shipped = [d for d in demos.load() if d.family in steady and "train_test_split" not in d.program]
    for d in random.Random(0).sample(shipped, 6):
        env = gym.make(d.task, cores=0)
        env.reset(seed=0)
        info = env.step(d.response)[4]
        assert info["outcome"] == "scored", info["message"]
        assert info["score"] == pytest.approx(d.score, rel=1e-3)
        env.close()


@given(seed=st.integers(0, 10**6))
def test_renaming_is_one_to_one_and_keeps_reserved_names(seed: int) -> None:
    columns = ["id", "number", "Age", "Home_Type", "x1", "class"]
    renaming = draw_renaming(columns, random.Random(seed))
    assert set(renaming.names) == {"Age", "Home_Type", "x1", "class"}
    assert len(set(renaming.names.values())) == 4
    assert not set(renaming.names.values()) & set(columns)


def test_renaming_changes_columns_and_nothing_else() -> None:
    renaming = Renaming({"spam": "Fee", "cc": "Rate", "number": "Kind"}, "Farms at risk")
    text = "# Spam\nmetric: roc_auc\ninput/spam.csv, 9 rows: target spam | num cc?, ccc | cat number"
    assert renaming.prompt(text) == (
        "# Farms at risk\nmetric: roc_auc\ninput/spam.csv, 9 rows: target Fee | num Rate?, ccc | cat Kind"
    )
    assert renaming.program('y = train["spam"]; x = train[["cc", "ccc"]]; spam = 1') == (
        'y = train["Fee"]; x = train[["Rate", "ccc"]]; spam = 1'
    )


@pytest.mark.parametrize("name", ["job-runtime", "email-spam"])
def test_a_renamed_program_does_the_same_to_the_renamed_table(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = get_task(name)
    data = task.load()
    columns = {fact.name: fact for fact in survey(data.public_dir)}["train.csv"].columns
    renaming = draw_renaming(columns, random.Random(4))
    draft = next(
        d
        for d in (grammar(name).draw(random.Random(s)) for s in range(200))
        if d.family == "naive Bayes" and "get_dummies" in d.program
    )
    results = []
    for folder, program in (("old", draft.program), ("new", renaming.program(draft.program))):
        (tmp_path / folder / "input").mkdir(parents=True)
        for file in data.public_dir.glob("*.csv"):
            table = pd.read_csv(file, dtype=str)
            table = table.rename(columns=renaming.names) if folder == "new" else table
            table.to_csv(tmp_path / folder / "input" / file.name, index=False)
        monkeypatch.chdir(tmp_path / folder)
        with warnings.catch_warnings(action="ignore"):
            exec(compile(program, folder, "exec"), {})
        results.append(pd.read_csv(tmp_path / folder / "submission.csv"))
    old, new = results
    assert list(new.columns) == ["id", renaming.names[task.target[0]]]
    np.testing.assert_array_equal(old.to_numpy(), new.to_numpy())


def test_collect_executes_and_keeps_only_what_scores() -> None:
    lines: list[str] = []
    found = demos.collect({"concrete-strength": 2}, seed=1, env_kwargs={"cores": 0}, report=lines.append)
    assert len(found) == 2
    for d in found:
        assert d.task == "mle_gym/concrete-strength-v0"
        assert 3 < d.score < 40  # MPa; the target's standard deviation is 16.7
        assert d.duration > 0
    assert lines[0].startswith("concrete-strength: 2 of ")
    record = json.dumps([d.response for d in found])
    assert "compressive_strength" in record or "columns[-1]" in record
