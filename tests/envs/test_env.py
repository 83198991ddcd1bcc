from __future__ import annotations

import dataclasses
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from mle_gym.env import MLEEnv
from mle_gym.instrument import MILESTONES
from mle_gym.spaces import MAX_LENGTH
from tests.envs.programs import COPY, answer, sleeper
from tests.envs.schema import check_info

TASK = "credit-default"
Make = Callable[..., MLEEnv]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[MLEEnv] = []

    def build(task: str = TASK, **kwargs: Any) -> MLEEnv:
        made.append(MLEEnv(task, **{"cores": 0, **kwargs}))
        return made[-1]

    yield build
    for env in made:
        env.close()


WRITE = "open('submission.csv', 'w').write"
NOT_A_NUMBER = f"rows = open('input/sample_submission.csv').read()\n{WRITE}(rows.replace('0.5', 'x'))"
ACTIONS: dict[str, tuple[str, str]] = {
    "copy": (answer(COPY), "scored"),
    "no rows": (answer(f"{WRITE}('id,default\\n')"), "invalid_submission"),
    "not a table": (answer(f"{WRITE}(chr(0) * 100)"), "invalid_submission"),
    "not a number": (answer(NOT_A_NUMBER), "invalid_submission"),
    "symbolic link": (answer("import os; os.symlink('input/test.csv', 'submission.csv')"), "invalid_submission"),
    "folder": (answer("import os; os.mkdir('submission.csv')"), "invalid_submission"),
    "fifo": (answer("import os; os.mkfifo('submission.csv')"), "invalid_submission"),
    "does nothing": (answer("pass"), "no_submission"),
    "writes elsewhere": (answer(COPY.replace("submission.csv", "result.csv")), "no_submission"),
    "empty": ("", "no_program"),
    "words": ("I would rather not.", "no_program"),
    "empty block": ("```python\n\n```", "no_program"),
    "shell": ("```bash\nls\n```", "no_program"),
    "too long": ("x" * (MAX_LENGTH + 1), "no_program"),
    "binary": (bytes(range(256)).decode("latin-1"), "no_program"),
    "surrogates": (answer("print('\ud800')"), "no_program"),
    "null byte": (answer("print(1)\0"), "syntax_error"),
    "broken": (answer("def f(:\n"), "syntax_error"),
    "deep": (answer("x = " + "(" * 3000), "syntax_error"),
    "cut": ("```python\nimport os\nx = os.path.join('a',", "syntax_error"),
    "raises": (answer("1 / 0"), "runtime_error"),
    "exits": (answer("import sys; sys.exit(3)"), "runtime_error"),
    "unknown module": (answer("import no_such_module"), "runtime_error"),
    "valid, then fails": (answer(COPY + "raise RuntimeError('too late')"), "runtime_error"),
    "kills itself": (answer("import os; os.kill(os.getpid(), 9)"), "runtime_error"),
    "floods": (answer("while True: print('x' * 10000)"), "output_limit"),
}  # fmt: skip


@pytest.mark.parametrize(("action", "outcome"), ACTIONS.values(), ids=ACTIONS)
def test_outcomes(make: Make, action: str, outcome: str) -> None:
    env = make(time_limit=20.0)
    _, info = env.reset(seed=0)
    check_info(info, reset=True)
    observation, reward, terminated, truncated, info = env.step(action)
    check_info(info)
    assert info["outcome"] == outcome
    assert observation in env.observation_space
    assert (terminated, truncated) == (True, False)
    assert type(reward) is float
    if outcome == "scored":
        # Constant predictions rank nothing: their ROC AUC is one half.
        assert (reward, info["score"]) == (0.5, 0.5)
    else:
        assert reward == pytest.approx(-10.0 + info["partial_credit"])
    if outcome in ("no_program", "syntax_error"):
        assert (info["duration"], info["cpu_time"], info["queue_time"]) == (0.0, 0.0, 0.0)
    else:
        assert info["duration"] > 0.0


def test_timeout_counts_what_was_reached(make: Make) -> None:
    env = make(time_limit=4.0)
    env.reset(seed=0)
    program = "import pandas as pd\ntrain = pd.read_csv('input/train.csv')\nprint('loaded', flush=True)\n"
    _, reward, terminated, _, info = env.step(answer(program + "while True: pass"))
    check_info(info)
    assert (info["outcome"], terminated) == ("timeout", True)
    reached = {name for name, flag in zip(MILESTONES, info["milestones"], strict=True) if flag}
    assert reached == {"imported_packages", "loaded_data"}
    assert reward == pytest.approx(-9.8)
    assert info["terminal_output"].startswith("loaded")
    assert 3.9 < info["duration"] < 8.0


def test_out_of_memory(make: Make) -> None:
    env = make(memory_mb=200)
    env.reset(seed=0)
    *_, info = env.step(answer("x = bytearray(800 * 2**20)\nx[::4096] = b'1' * len(x[::4096])"))
    check_info(info)
    assert info["outcome"] in ("out_of_memory", "runtime_error")
    assert "memory" in (info["message"] + info["terminal_output"]).lower()


def test_cancelled(make: Make) -> None:
    env = make()
    prompt, _ = env.reset(seed=0)
    env.cancel_event = threading.Event()
    threading.Timer(0.5, env.cancel_event.set).start()
    start = time.monotonic()
    observation, reward, terminated, truncated, info = env.step(sleeper(60))
    assert time.monotonic() - start < 30
    check_info(info)
    assert (info["outcome"], reward, terminated, truncated) == ("cancelled", 0.0, False, True)
    assert observation == prompt


def test_a_failing_grader_is_no_fault_of_the_program(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    env = make()
    env.reset(seed=0)
    assert env._data is not None
    env._data = dataclasses.replace(env._data, answers=tmp_path / "gone.csv")  # type: ignore[call-arg]
    _, reward, terminated, truncated, info = env.step(answer(COPY))
    check_info(info)
    assert (info["outcome"], reward, terminated, truncated) == ("infrastructure_error", 0.0, False, True)
    assert "FileNotFoundError" in info["message"]
    assert "Grading credit-default on split 'public' failed" in caplog.text


@pytest.mark.parametrize("action", [None, 3, b"bytes", ["text"]])
def test_only_text_is_an_action(make: Make, action: Any) -> None:
    env = make()
    env.reset(seed=0)
    with pytest.raises(TypeError, match=r"the action space Utf8\(262144, sampler='program'\) takes str"):
        env.step(action)


def test_the_seed_reaches_the_program(make: Make) -> None:
    env = make()
    seeds = []
    for seed in (7, None, 2**40 + 5):
        env.reset(seed=seed)
        *_, info = env.step(answer("import os\nprint(os.environ['MLE_SEED'])"))
        seeds.append(int(info["terminal_output"]))
    assert (seeds[0], seeds[2]) == (7, 5)
    env.reset(seed=7)
    env.reset()
    *_, info = env.step(answer("import os\nprint(os.environ['MLE_SEED'])"))
    assert int(info["terminal_output"]) == seeds[1]


def test_what_a_program_finds(make: Make) -> None:
    env = make()
    env.reset(seed=0)
    program = (
        "import os\nsample = os.environ['MLE_SAMPLE_SUBMISSION']\n"
        "print(os.path.isabs(sample), os.path.isfile(sample))\n"
        "print(sorted(os.listdir('.')), os.access('.', os.W_OK), os.access('input', os.W_OK))\n"
        "print(sorted(os.listdir('input')))\n"
    )
    *_, info = env.step(answer(program))
    first, second, third = info["terminal_output"].splitlines()
    assert first == "True True"
    assert second == "['input', 'program.py'] True False"
    assert "train.csv" in third
    assert "answers.csv" not in third


def test_episode_of_several_programs(make: Make) -> None:
    env = make(max_steps=3)
    prompt, _ = env.reset(seed=0)
    assert prompt.startswith("Solve this")
    observation, _, terminated, truncated, _ = env.step(answer("print('spam and eggs')"))
    assert (terminated, truncated) == (False, False)
    assert "print('spam and eggs')" in observation
    assert "It ended with: no submission." in observation
    assert "```\nspam and eggs\n```" in observation
    observation, _, terminated, _, info = env.step(answer(COPY))
    assert (terminated, info["outcome"]) == (False, "scored")
    assert "It ended with: roc_auc 0.5." in observation
    assert env.step("words")[2]
    with pytest.raises(gym.error.ResetNeeded):
        env.step("words")
    assert env.reset()[0] == prompt


def test_step_before_reset(make: Make) -> None:
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        make().step("text")


def test_reset_with_a_previous_attempt(make: Make) -> None:
    env = make()
    plain, _ = env.reset(seed=0)
    previous = {"program": "x = 1234", "plan": "Guess.", "terminal_output": "accuracy 0.9", "score": 0.75}
    prompt, info = env.reset(options={"previous": previous})
    check_info(info, reset=True)
    for part in ("x = 1234", "Guess.", "accuracy 0.9", "roc_auc 0.75"):
        assert part in prompt
        assert part not in plain
    assert env.reset()[0] == plain
    with pytest.raises(ValueError, match="did you mean 'previous'"):
        env.reset(options={"previuos": previous})


def test_nothing_of_the_report_split_is_told(make: Make) -> None:
    env = make(reward_split="public", max_steps=2)
    env.reset(seed=0)
    program = (
        "import csv, os, random\nrandom.seed(5)\n"
        "rows = list(csv.reader(open(os.environ['MLE_SAMPLE_SUBMISSION'])))\n"
        "rows[1:] = [[i, random.random()] for i, _ in rows[1:]]\n"
        "csv.writer(open('submission.csv', 'w')).writerows(rows)\n"
    )
    observation, reward, _, _, info = env.step(answer(program))
    assert env._data is not None
    scores = {split: env._data.grade(Path(info["submission_path"]), split).score for split in env._data.splits}  # type: ignore[arg-type]
    assert len(set(scores.values())) == 3
    assert info["score"] == reward == scores["public"]
    everything = repr(info) + observation
    for split in ("private", "all"):
        assert f"{scores[split]:.5g}" not in everything
    private = make(reward_split="private")
    private.reset(seed=0)
    assert private.step(answer(program))[4]["score"] == scores["private"]


def test_submissions_are_kept_until_close(make: Make) -> None:
    env = make()
    paths = []
    for _ in range(2):
        env.reset()
        paths.append(Path(env.step(answer(COPY))[4]["submission_path"]))
    assert env._data is not None
    sample = env._data.public_dir / env._data.sample_submission
    assert [path.read_bytes() for path in paths] == [sample.read_bytes()] * 2
    env.close()
    env.close()
    assert not any(path.exists() for path in paths)
    env.reset()
    assert env.step(answer(COPY))[4]["outcome"] == "scored"


def test_old_submissions_go(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mle_gym.env.KEPT_SUBMISSIONS", 2)
    env = make()
    paths = []
    for _ in range(3):
        env.reset()
        paths.append(Path(env.step(answer(COPY))[4]["submission_path"]))
    assert [path.exists() for path in paths] == [False, True, True]


def test_pickle(make: Make) -> None:
    env = make(max_steps=2)
    env.reset(seed=3)
    env.step("words")
    other = pickle.loads(pickle.dumps(env))
    assert other.config == env.config
    assert other.observation_space == env.observation_space
    assert other.np_random.bit_generator.state == env.np_random.bit_generator.state
    *_, terminated, _, info = other.step(answer(COPY))
    assert (terminated, info["outcome"]) == (True, "scored")
    assert os.path.exists(info["submission_path"])
    other.close()
    fresh = pickle.loads(pickle.dumps(MLEEnv(TASK)))
    assert fresh.reset(seed=0)[0] == MLEEnv(TASK).reset(seed=0)[0]


def test_data_that_are_not_there(make: Make) -> None:
    from mle_gym.tasks import TaskUnavailable

    with pytest.raises(TaskUnavailable, match="synthetic"):
        make(data="synthetic").reset()


@pytest.mark.parametrize("reward", ["medal", "normalized", "percentile"])
def test_rewards_that_the_task_cannot_give(make: Make, reward: str) -> None:
    env = make(reward=reward)
    env.task = dataclasses.replace(env.task, name="credit-default-bare", thresholds=None)
    with pytest.raises(ValueError, match=rf"reward='{reward}' needs .* use reward='paper'"):
        env.reset()


def test_normalized_and_medal_rewards(make: Make) -> None:
    from mle_gym.grading.grade import Thresholds

    thresholds = Thresholds(gold=0.9, silver=0.8, bronze=0.4, median=0.6)
    for reward, expected in (("normalized", 0.0), ("medal", 1 / 3)):
        env = make(reward=reward)
        env.task = dataclasses.replace(env.task, name="credit-default-medals", thresholds=thresholds)
        env.reset()
        _, value, _, _, info = env.step(answer(COPY))
        assert value == pytest.approx(expected)
        assert info["medal"] == "bronze"
        env.reset()
        assert env.step("words")[1] == -1.0


def test_unknown_names_are_met_early(make: Make) -> None:
    with pytest.raises(TypeError, match=r"There is no argument 'rewards'; did you mean 'reward'\?"):
        make(rewards="paper")
    with pytest.raises(ValueError, match="did you mean 'probe'"):
        make(instrumenter="prob").reset()
    with pytest.raises(ValueError, match="did you mean 'local'"):
        make(sandbox="locla").reset()


def test_llm_needs_a_model(make: Make) -> None:
    from mle_gym.instrument.llm import MARKERS, LLMInstrumenter

    env = make(instrumenter="llm")
    with pytest.raises(ValueError, match="instrumenter='llm' needs a model: instrumenter_options="):
        env.reset()

    def mark_the_import(prompt: str) -> str:
        program = prompt.rpartition("```python\n")[2].rpartition("```")[0]
        lines = program.splitlines()
        return "\n".join([lines[0], f'print("{MARKERS["imported_packages"]}")', *lines[1:]])

    env.instrumenter = LLMInstrumenter(mark_the_import)
    env.reset()
    *_, info = env.step(answer("import math\nprint(math.pi)"))
    assert info["instrumenter"] == "llm:forgeable"
    assert info["milestones"][0]
    assert info["partial_credit"] == 0.1


@pytest.mark.parametrize("instrumenter", ["probe", "none"])
def test_printed_milestones_earn_nothing(make: Make, instrumenter: str) -> None:
    env = make(instrumenter=instrumenter)
    env.reset()
    _, reward, _, _, info = env.step(answer("\n".join(f"print('{name}')" for name in MILESTONES)))
    assert reward == -10.0
    assert not np.any(info["milestones"])


def test_output_is_cut_in_the_middle(make: Make) -> None:
    env = make()
    env.reset()
    *_, info = env.step(answer("print('first')\nprint('x' * 100_000)\nprint('last')"))
    output = info["terminal_output"]
    assert output.startswith("first\n")
    assert output.endswith("last")
    assert len(output) < 20_000


def test_prompt_budget_and_python(make: Make) -> None:
    import sys

    env = make(token_budget=133, python=sys.executable)
    assert len(env.reset()[0]) <= 399
    assert env.step(answer(COPY))[4]["outcome"] == "scored"
    with pytest.raises(ValueError, match="is not a working Python interpreter"):
        make(python="/nonexistent/python").reset()


def test_more_cores_than_there_are_is_one_sentence(make: Make) -> None:
    total = len(os.sched_getaffinity(0))
    with pytest.raises(ValueError, match=f"may run on {total}; pass cores={total} or fewer"):
        make(cores=total + 1).reset(seed=0)


def test_a_forked_copy_does_not_take_the_place_of_a_step(make: Make) -> None:
    env = make()
    env.reset(seed=0)
    env.step(answer(COPY))
    folder = env._folder  # type: ignore[attr-defined]
    (folder / "000001").mkdir()  # what a forked copy of the environment leaves
    env.reset(seed=0)
    assert env.step(answer(COPY))[4]["outcome"] == "scored"
    env.close()
