from __future__ import annotations

import importlib.util
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from mle_gym.interpreter import Interpreter


@pytest.fixture
def here() -> Interpreter:
    return Interpreter.find()


def test_packages_are_those_that_can_be_imported(here: Interpreter) -> None:
    assert here.version == sys.version_info[:2]
    assert {"numpy", "pandas", "scikit-learn"} <= set(here.packages)
    assert ("lightgbm" in here.packages) == (importlib.util.find_spec("lightgbm") is not None)


def test_another_interpreter_is_asked() -> None:
    # The base interpreter of this virtual environment; -I keeps the environment's packages out of its sight.
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    if not base.exists():
        pytest.skip(f"no interpreter at {base}")
    found = Interpreter.find(str(base))
    assert found.path == str(base)
    assert found.version == sys.version_info[:2]


@pytest.mark.parametrize("path", ["/nonexistent/python", "/bin/true", str(Path(__file__).parent)])
def test_no_interpreter_there(path: str) -> None:
    with pytest.raises(ValueError, match="is not a working Python interpreter"):
        Interpreter.find(path)


GOOD = ["x = 1", "", "# only a comment", "async def f():\n    await g()", "print('é', '\\u0394')"]
BAD = {
    "nested": "(" * 5000,
    "unary": "-" * 100_000 + "1",
    "sum": "1+" * 100_000 + "1",
    "null": "x = 1\0",
    "return": "return 1",
    "await": "await x",
    "indent": "if 1:\nx = 2",
    "digits": "9" * 10_000,
    "words": "This is not a program.",
    "surrogate": "x = '\ud800'",
}


@pytest.mark.parametrize("source", GOOD)
def test_programs(here: Interpreter, source: str) -> None:
    assert here.syntax_error(source) == ""


@pytest.mark.parametrize("source", BAD.values(), ids=BAD)
def test_no_programs(here: Interpreter, source: str) -> None:
    message = here.syntax_error(source)
    assert message
    assert "\n" not in message


@pytest.mark.parametrize("source", ["x = '\\d'", "x = 1\nx is 1", "assert (x, 'always true')", "1or 2"])
def test_warnings_neither_leak_nor_fail_a_program(here: Interpreter, source: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        assert here.syntax_error(source) == ""
        warnings.simplefilter("always")
        assert here.syntax_error(source) == ""
    assert caught == []


def test_the_line_is_named(here: Interpreter) -> None:
    assert here.syntax_error("x = 1\ny = = 2\n") == "SyntaxError: invalid syntax (line 2)"


def test_another_version_decides_for_itself(here: Interpreter) -> None:
    # Pretending that this interpreter has another version sends the text to a process of its own.
    other = replace(here, version=(3, 0))
    assert other.syntax_error("x = 'é'\nx is 1") == ""
    assert other.syntax_error("y = = 2") == "SyntaxError: invalid syntax"
    assert "null bytes" in other.syntax_error("\0")


def test_overlong_programs_are_not_parsed() -> None:
    here = Interpreter.find()
    assert here.syntax_error("a" + "#" * (2**16 - 1)) == ""
    assert here.syntax_error("a" + ".a" * 120_000) == "The program has 240,001 bytes; at most 65,536 are parsed."
    assert here.syntax_error("'" + "\u00e9" * 2**15 + "'").startswith("The program has 65,538 bytes")
