"""TRL's GRPO learns on our environments; programs of one batch run at the same time."""

from __future__ import annotations

import importlib.util
import math
import time
from pathlib import Path

import pytest

import tests.trainers.bandit  # noqa: F401  (registers its ids)
from examples.trl_reward import EnvReward, train

needs_trl = pytest.mark.skipif(
    importlib.util.find_spec("trl") is None, reason="trl is not installed; pip install 'mle-gym[trl]'"
)
quiet = pytest.mark.filterwarnings("ignore")
TASKS = ("mle_gym/credit-default-v0", "mle_gym/breast-cancer-v0")
SLEEP = "I sleep.\n```python\nimport time\ntime.sleep(3.0)\n```\n"
SAMPLE = (
    "Hand in the sample.\n```python\nimport os, shutil\n"
    "shutil.copy(os.environ['MLE_SAMPLE_SUBMISSION'], 'submission.csv')\n```"
)


def test_programs_run_in_parallel_and_rewards_keep_their_order() -> None:
    with EnvReward(TASKS, slots=4, cores=0) as reward:
        first, second = reward.rows()
        assert (first["task"], second["task"]) == TASKS
        assert first["prompt"] != second["prompt"]
        chat = [{"role": "assistant", "content": SAMPLE}]
        assert reward([""], [SAMPLE], [TASKS[0]]) == [0.5]  # ROC AUC of a constant; starts the sandbox
        start = time.monotonic()
        earned = reward([""] * 6, [SLEEP, SAMPLE, SLEEP, chat, "No program.", SLEEP], [*TASKS, *TASKS, *TASKS])
        seconds = time.monotonic() - start
    # Of 569 cases 357 are benign: the log loss of their share is its entropy. Who only slept reached no milestone.
    share = 357 / 569
    entropy = -share * math.log(share) - (1 - share) * math.log(1 - share)
    assert earned[1] == earned[3] == pytest.approx(-entropy, abs=0.01)
    assert earned[0] == earned[2] == earned[5] == -10.0
    assert earned[4] == -10.0
    assert 3.0 <= seconds < 8.9, "nine seconds of sleep, one after another"


def test_failures_of_the_machine_have_no_reward() -> None:
    with EnvReward(["Bandit-v0"], slots=1, fail=True) as reward:
        assert reward([""] * 2, ["a", "c"], ["Bandit-v0"] * 2) == [None, None]
    with EnvReward(["Bandit-v0"], slots=1) as reward:
        assert reward([""] * 3, ["a", "c", "b"], ["Bandit-v0"] * 3) == [0.2, 1.0, -1.0]


@needs_trl
@quiet
def test_grpo_learns_with_it(tiny_folder: Path, tmp_path: Path) -> None:
    log = train(
        ("Bandit-v0",),
        steps=25,
        batch_size=16,
        policy=str(tiny_folder),
        max_new_tokens=3,
        learning_rate=0.02,
        seed=1,
        out=str(tmp_path),
        env_kwargs={},
    )
    assert len(log) == 25
    first, last = (sum(entry["reward"] for entry in part) / 3 for part in (log[:3], log[-3:]))
    assert first < -0.8
    assert last > first + 0.5
