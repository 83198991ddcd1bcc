"""Dispatch, help, and what a user sees of a mistake."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from mle_gym.commands.base import UserError, parse, resolve_id
from mle_gym.commands.tasks import Options

from .conftest import Cli, Result


def assert_one_sentence(result: Result, *words: str) -> None:
    """Exit code 2, one line on stderr that holds the words, nothing on stdout."""
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert result.stderr.startswith("mle-gym: ")
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    for word in words:
        assert word in result.stderr


def test_help_lists_every_command_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; from mle_gym.cli import main; code = main(['--help']);"
        "print([m for m in ('torch', 'pandas', 'sklearn', 'rich', 'matplotlib', 'trainers') if m in sys.modules]);"
        "sys.exit(code)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    *text, heavy = result.stdout.strip().splitlines()
    assert heavy == "[]"
    shown = {line.split()[0]: line.split(maxsplit=1)[1:] for line in text if line.startswith("  ")}
    registered = {point.name for point in entry_points(group="mle_gym.commands")}
    assert set(shown) == {"tasks", "show", "prepare", "run", "grade", "doctor"} | registered
    assert all(shown.values()), "every command says what it does"


def test_version(cli: Cli) -> None:
    from importlib.metadata import version

    result = cli("--version")
    assert (result.returncode, result.stdout.strip()) == (0, f"mle-gym {version('mle-gym')}")


def test_no_command_prints_help_and_fails(cli: Cli) -> None:
    result = cli()
    assert result.returncode == 2
    assert "usage: mle-gym" in result.stdout


def test_unknown_command_suggests_the_nearest(cli: Cli) -> None:
    assert_one_sentence(cli("doctr"), "did you mean `doctor`?")


def test_unknown_id_suggests_the_nearest(cli: Cli) -> None:
    assert_one_sentence(cli("show", "credit-defalt"), "did you mean mle_gym/credit-default-v0?")


def test_wrong_option_is_one_sentence(cli: Cli) -> None:
    assert_one_sentence(cli("tasks", "--jsn"), "--jsn", "mle-gym tasks --help")


def test_missing_argument_is_one_sentence(cli: Cli) -> None:
    assert_one_sentence(cli("show"), "Missing: ID; see `mle-gym show --help`.")
    assert_one_sentence(cli("run"), "Missing: ID, PROGRAM; see `mle-gym run --help`.")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_wrong_value_in_any_terminal(process_env: dict[str, str], encoding: str) -> None:
    command = [sys.executable, "-m", "mle_gym", "show", "credit-default", "--token-budget", "many"]
    environment = process_env | {"PYTHONIOENCODING": encoding}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert_one_sentence(Result(result.returncode, result.stdout, result.stderr), "--token-budget", "'many'")
    assert "--" * 4 not in result.stderr


def test_unknown_tag_names_the_tags(cli: Cli) -> None:
    assert_one_sentence(cli("tasks", "--tag", "no-such-tag"), "no-such-tag", "tabular")


def test_help_of_a_command(cli: Cli) -> None:
    result = cli("run", "--help")
    assert result.returncode == 0
    assert "--time-limit" in result.stdout


def test_a_real_process_prints_no_traceback(process_env: dict[str, str]) -> None:
    command = [sys.executable, "-m", "mle_gym", "show", "no-such-task"]
    result = subprocess.run(command, capture_output=True, text=True, env=process_env, timeout=60)
    assert_one_sentence(Result(result.returncode, result.stdout, result.stderr), "no-such-task")


def test_reader_that_goes_away_is_no_error(process_env: dict[str, str]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "mle_gym", "tasks"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=process_env
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 128 + signal.SIGPIPE
    assert errors == b""


def test_ctrl_c_ends_without_traceback(process_env: dict[str, str]) -> None:
    # The command waits for a program on standard input that never comes.
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "mle_gym", "run", "credit-default", "-"],
        stdin=read_end,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=process_env,
    )
    try:
        assert process.stderr is not None
        # Importing is over once the parser has been imported and used: docstring parsing comes last.
        for line in process.stderr:
            if "tyro" in line and "_cli" in line:
                break
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        os.close(read_end)
        os.close(write_end)
    assert process.returncode == 128 + signal.SIGINT
    assert "mle-gym: interrupted." in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("name", ["credit-default", "mle_gym/credit-default", "mle_gym/credit-default-v0"])
def test_ids_have_short_forms(name: str) -> None:
    assert resolve_id(name) == "mle_gym/credit-default-v0"


def test_foreign_ids_are_not_ours() -> None:
    with pytest.raises(UserError, match="There is no environment 'CartPole-v1'"):
        resolve_id("CartPole-v1")


def test_parse_returns_the_options() -> None:
    assert parse(Options, ["--tag", "tabular", "--json"], command="tasks") == Options(tag="tabular", json=True)
