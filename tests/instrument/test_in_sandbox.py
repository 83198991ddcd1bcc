"""The hooks in the local sandbox, whose supervisor stamps what they report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mle_gym.instrument import MILESTONES, credit, fitted_estimators, make_instrumenter, milestone_flags
from mle_gym.sandbox import make_sandbox
from mle_gym.sandbox.base import Execution, Limits, Sandbox, Status
from mle_gym.tasks.task import TaskData

from .programs import LOAD, WRITE

FIT = """from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
m = LogisticRegression().fit(X[:200], y[:200])
print(accuracy_score(y[200:], m.predict(X[200:])))
p = m.predict(T)"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with make_sandbox("local", allow_unsafe=True) as sandbox:
        yield sandbox


@pytest.fixture
def execute(sandbox: Sandbox, data: TaskData, tmp_path: Path):
    def execute(source: str, name: str = "probe", time: float = 30.0, **options: object) -> Execution:
        program = make_instrumenter(name, **options).instrument(source, data)
        return sandbox.run(program, files={"input": data.public_dir}, limits=Limits(time=time), artifacts_dir=tmp_path)

    return execute


def test_all_milestones_with_their_evidence(execute):
    execution = execute(LOAD + FIT + WRITE)
    assert execution.status is Status.OK, execution.stderr
    assert milestone_flags(execution.milestones).all()
    assert fitted_estimators(execution.milestones) == ("LogisticRegression",)
    evidence = {item.name: item.evidence for item in execution.milestones}
    assert evidence["wrote_submission"] == "kernel"
    assert {evidence[name] for name in MILESTONES[:-1]} == {"interpreter"}
    times = [item.time for item in execution.milestones]
    assert times == sorted(times)
    assert 0 < times[0] <= times[-1] <= execution.timing.duration


def test_time_limit_keeps_what_was_reached(execute):
    execution = execute(
        LOAD + "import time\nfrom sklearn.linear_model import Ridge\nRidge().fit(X, y)\ntime.sleep(60)", time=2
    )
    assert execution.status is Status.TIMEOUT
    assert credit(execution.milestones) == 0.4


def test_traceback_is_the_programs(execute):
    hooked = execute(LOAD + "from sklearn.linear_model import Ridge\nRidge().fit(X, y[:9])")
    bare = execute(LOAD + "from sklearn.linear_model import Ridge\nRidge().fit(X, y[:9])", name="none")
    assert hooked.status is Status.PROGRAM_ERROR
    assert "inconsistent numbers of samples" in hooked.stderr
    assert hooked.stderr == bare.stderr
    assert bare.milestones == ()


def test_printed_markers_earn_nothing(execute):
    execution = execute("\n".join(f"print({name!r})" for name in MILESTONES))
    assert execution.status is Status.OK
    assert credit(execution.milestones) == 0.0


def test_language_model_arm(execute):
    def insert(prompt: str) -> str:
        program = prompt.rpartition("```python\n")[2].partition("\n```")[0]
        return "```python\n" + program.replace("Ridge()", 'Ridge()\nprint("defined model")') + "\n```"

    source = LOAD + "from sklearn.linear_model import Ridge\nm = Ridge()\nprint('trained model')"
    execution = execute(source, name="llm", generate=insert)
    assert execution.status is Status.OK, execution.stderr
    assert execution.stdout == "trained model\n"
    assert [item.name for item in execution.milestones] == ["defined_model"]
