from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_gym.instrument import make_instrumenter
from mle_gym.instrument.context import program_context
from mle_gym.instrument.hooks.core import rows


def test_context_of_a_table(data):
    context = program_context("import numpy as np\nimport pandas\nx = 1\nimport json", data)
    assert context == {
        "input_dir": "input",
        "train_files": ["train.csv"],
        "test_files": ["test.csv"],
        "submission": "submission.csv",
        "train_rows": 300,
        "test_rows": [100],
        "last_import": (4, "json"),
    }
    assert json.loads(json.dumps(context))["last_import"] == [4, "json"]


LAST_IMPORTS = {
    "import a, b.c": (1, "b.c"),
    '"""Doc."""\nfrom __future__ import annotations\nfrom a.b import c, d': (3, "a.b"),
    "import os\nos.environ['X'] = '1'\nimport numpy": (3, "numpy"),
    "import os\nx = len('')\nimport numpy": (1, "os"),
    "try:\n    import a\nexcept ImportError:\n    a = None\nimport b": (5, "b"),
    "from (": None,
    "x = 1": None,
    "def f():\n    import a": None,
    "from . import a": None,
    "x = '\\d'": None,
    "\0": None,
    "": None,
}


@pytest.mark.parametrize("source", LAST_IMPORTS)
def test_last_import(data, source):
    assert program_context(source, data)["last_import"] == LAST_IMPORTS[source]


@given(st.text())
def test_no_source_is_too_strange(data, source):
    for name in ("probe", "none"):
        assert make_instrumenter(name).instrument(source, data).source == source


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8)


@given(cells=st.lists(st.tuples(CELLS, st.integers()), max_size=8))
def test_rows_are_counted_as_pandas_reads_them(tmp_path_factory, data, cells):
    folder = tmp_path_factory.mktemp("rows")
    pd.DataFrame(cells, columns=["text", "number"]).to_csv(folder / "train.csv", index=False)
    known = program_context("", replace(data, public_dir=folder))["train_rows"]
    assert known == len(pd.read_csv(folder / "train.csv"))


def test_rows_that_are_not_counted(tmp_path, data):
    task = replace(data.task, train_files=("images", "table.parquet", "missing.csv"), test_files=("empty",))
    (tmp_path / "images").mkdir()
    (tmp_path / "empty").mkdir()
    for i in range(3):
        (tmp_path / "images" / f"{i}.png").touch()
    (tmp_path / "table.parquet").write_bytes(b"PAR1\n")
    context = program_context("", replace(data, task=task, public_dir=tmp_path))
    assert (context["train_rows"], context["test_rows"]) == (3, [])


def test_rows_of_values():
    torch = pytest.importorskip("torch")
    for value in ([1, 2, 3], (1, 2, 3), np.zeros((3, 2)), pd.Series([1, 2, 3]), torch.zeros(3, 1)):
        assert rows(value) == 3
    for value in (None, "abc", 3, np.float64(1), {1: 2}, object(), torch.tensor(1.0)):
        assert rows(value) is None
