"""Every mistake in a configuration is one sentence and exit code 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_gym import cli
from trainers.common.config import ConfigError, TrainConfig, load_config
from trainers.common.schema import build, to_toml

ROOT = Path(__file__).parents[2]


def train(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``mle-gym train`` as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "mle_gym", "train", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_file_and_overrides_are_merged(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('seed = 3\n[env]\nids = ["a"]\n[schedule]\nupdates = 7\n[algorithm.options]\nclip = 0.1\n')
    config = load_config(
        file, ["schedule.updates=9", "algorithm.options.kl=0.01", "policy.name=some/model", "weights.cap=4"]
    )
    assert config.seed == 3
    assert config.env.ids == ("a",)
    assert config.schedule.updates == 9
    assert config.algorithm.options == {"clip": 0.1, "kl": 0.01}
    assert config.policy.name == "some/model"
    assert config.weights.cap == 4.0
    assert isinstance(config.weights.cap, float)


@given(
    seed=st.integers(0, 2**31),
    name=st.text(st.characters(exclude_categories=["Cs", "Cc"])),
    ids=st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]))),
    rate=st.floats(1e-12, 1e3),
    options=st.dictionaries(
        st.text(min_size=1, alphabet="abc_-é. 1"), st.one_of(st.booleans(), st.integers(), st.text(alphabet='a"\\\n'))
    ),
)
def test_what_is_written_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    name: str,
    ids: list[str],
    rate: float,
    options: dict[str, object],
) -> None:
    config = build(
        TrainConfig,
        {
            "seed": seed,
            "policy": {"name": name},
            "env": {"ids": ids},
            "algorithm": {"learning_rate": rate, "options": options},
        },
    )
    file = tmp_path_factory.mktemp("config") / "config.toml"
    file.write_text(to_toml(config), encoding="utf-8")
    assert load_config(file) == config


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("shedule.updates=3", "Unknown key 'shedule'; did you mean 'schedule'"),
        ("schedule.update=3", "Unknown key 'schedule.update'; did you mean 'updates'"),
        ("schedule.updates=three", "schedule.updates must be a whole number, not 'three'"),
        ("schedule.updates=true", "schedule.updates must be a whole number, not True"),
        ("schedule.updates=2.5", "schedule.updates must be a whole number, not 2.5"),
        ("schedule.updates=0", "schedule.updates must be above 0, not 0"),
        ("algorithm.learning_rate=nan", "algorithm.learning_rate must be above 0"),
        ("admission.rule=races", "admission.rule must be one of 'oldest_first', .*, not 'races'"),
        ("admission.lookahead=-1", "admission.lookahead must not be negative"),
        ("admission.multiplier=0.9", "admission.multiplier must be at least 1"),
        ("admission.max_lag=-1", "admission.max_lag must not be negative"),
        ("admission.lookahead_max=0", "admission.lookahead_max must be above 0"),
        ("weights={rule='none',measure='cpu'}", "weights.rule = 'none' reads none; use rule = 'duration'"),
        ("weights={rule='inclusion',normalise='task_median'}", "use rule = 'duration', or leave normalise out"),
        ("policy.dtype=int8", "policy.dtype must be"),
        ("weights=duration", "weights must be a section"),
        ("seed.a=1", "did you mean|must be a whole number|goes into"),
        ("seed", "must look like section.key=value"),
        ("env.kwargs=3", "env.kwargs must be a section"),
    ],
)
def test_impossible_values_are_named(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(None, [override])


def test_malformed_and_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.toml does not exist"):
        load_config(tmp_path / "nothing.toml")
    file = tmp_path / "config.toml"
    file.write_text("seed = \n")
    with pytest.raises(ConfigError, match=r"config\.toml is not a TOML file"):
        load_config(file)
    file.write_text("sede = 1\n")
    with pytest.raises(ConfigError, match=r"config\.toml: Unknown key 'sede'; did you mean 'seed'"):
        load_config(file)


BANDIT = "tests.trainers.bandit:Bandit-v0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "nothing.toml"], "nothing.toml does not exist"),
        (["--set", "algorithm.learning_rat=1"], "did you mean 'learning_rate'"),
        (["--schedule.updates", "x"], "--schedule.updates"),
        (["--schedule.updates", "0"], "schedule.updates must be above 0"),
        (["--schedul.updates", "3"], "--schedul.updates"),
        (["--resume", "no/run"], "no/run is not a run folder"),
        (["--resume", "no/run", "--seed", "1"], "--resume takes no other arguments"),
        ([], "env.ids is empty"),
        (["--env.ids", "mle_gym/credit-defalt-v0"], "did you mean 'mle_gym/credit-default-v0'"),
        (["--env.ids", "no.such.module:X-v0"], "the module cannot be imported"),
        (["--env.ids", BANDIT, "--set", "env.kwargs.scal=2"], "env.kwargs"),
        (["--env.ids", BANDIT, "--policy.name", "./no/model"], "no/model"),
        (["--env.ids", BANDIT, "--algorithm.name", "asink_ppo"], "There is no algorithm 'asink_ppo'; known are: "),
        (["--env.ids", BANDIT, "--algorithm.name", "json:JSONDecoder"], "is not a subclass of"),
        (["--env.ids", BANDIT, "--set", "algorithm.options.clipp=0.1"], "did you mean 'clip'"),
        (["--env.ids", BANDIT, "--set", "algorithm.options.clip=2"], "clip must be between 0 and 1"),
        (["--env.ids", BANDIT, "--run", "tests"], "tests is not empty"),
        (["--env.ids", BANDIT, "--policy.device", "gpu"], "policy.device must be auto, cpu, cuda"),
    ],
)
def test_the_command_says_one_sentence(
    arguments: list[str],
    message: str,
    tiny_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if "--env.ids" in arguments and "--policy.name" not in arguments:
        arguments = [*arguments, "--policy.name", str(tiny_folder)]
    monkeypatch.chdir(ROOT)
    assert cli.main(["train", *arguments]) == 2
    output, errors = capfd.readouterr()
    assert message in errors
    assert errors.startswith("mle-gym: ")
    assert len(errors.strip().splitlines()) == 1, errors
    assert output == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "schedule.update=3"], "did you mean 'updates'"),
        (["--env.ids", BANDIT, "--policy.name", "./no/model"], "There is no folder no/model"),
    ],
)
def test_a_process_of_its_own_exits_with_2(arguments: list[str], message: str) -> None:
    result = train(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
