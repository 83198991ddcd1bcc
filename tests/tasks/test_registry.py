"""The table of tasks: names, ids, plug-ins, cheap import."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mle_gym.tasks import get_task, list_tasks, register_task
from mle_gym.tasks.registry import _tasks


def test_names_and_ids() -> None:
    task = get_task("credit-default")
    assert get_task("mle_gym/credit-default-v0") is task
    assert task in list_tasks()
    names = [task.name for task in list_tasks()]
    assert names == sorted(names)
    assert [task.name for task in list_tasks("image")] == ["digit-images"]
    assert list_tasks("no such tag") == ()


def test_an_unknown_name_suggests_near_ones() -> None:
    with pytest.raises(KeyError, match="There is no task 'credit-defalt'; did you mean credit-default"):
        get_task("credit-defalt")
    with pytest.raises(KeyError, match="list_tasks"):
        get_task("???")


def test_registering(monkeypatch: pytest.MonkeyPatch) -> None:
    task = get_task("credit-default")
    monkeypatch.setattr("mle_gym.tasks.registry._tasks", dict(_tasks))
    other = replace(task, title="Another title")
    with pytest.raises(ValueError, match="registered already"):
        register_task(other)
    assert register_task(task) is task
    assert register_task(other, replace=True) is other
    assert get_task("credit-default") is other
    for name in ("", "a/b", "a b", "é"):
        with pytest.raises(ValueError, match="must be made of"):
            register_task(replace(task, name=name))


PLUGIN = """
from dataclasses import replace
from mle_gym.tasks.offline.table import OFFLINE_TASKS

ONE = replace(OFFLINE_TASKS[0], name="plugin-one")

def many():
    yield replace(OFFLINE_TASKS[0], name="plugin-two")
    yield replace(OFFLINE_TASKS[0], name="plugin-three")
"""


def test_plug_ins_bring_tasks_and_a_broken_one_takes_nothing_with_it(tmp_path: Path) -> None:
    (tmp_path / "some_plugin.py").write_text(PLUGIN)
    info = tmp_path / "some_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[mle_gym.tasks]\na = some_plugin:ONE\nb = some_plugin:many\nc = some_plugin:absent\nd = no_module:TASK\n"
    )
    code = (
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    from mle_gym.tasks import list_tasks\n"
        "    names = {task.name for task in list_tasks()}\n"
        "assert {'plugin-one', 'plugin-two', 'plugin-three', 'credit-default'} <= names, names\n"
        "for warning in caught: print(warning.message)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env)
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert "'some_plugin:absent' are left out: AttributeError" in done.stdout
    assert "'no_module:TASK' are left out: ModuleNotFoundError" in done.stdout


def test_importing_loads_no_data_library() -> None:
    code = (
        "import sys\n"
        "from mle_gym.tasks.registry import list_tasks\n"
        "assert list_tasks()\n"
        "print(sorted({'pandas', 'sklearn', 'scipy', 'torch'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
