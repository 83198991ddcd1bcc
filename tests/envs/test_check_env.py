from __future__ import annotations

import time
import warnings
from pathlib import Path

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

import mle_gym
from tests.envs.programs import COPY, answer

# One of each family: tables, images in folders and archives, text, sound, masks.
SAMPLE = [
    "mle_gym/credit-default-v0",
    "mle_gym/digit-images-v0",
    "mle_gym/word-sentiment-v0",
    "mle_gym/aerial-cactus-identification-v0",
    "mle_gym/mlsp-2013-birds-v0",
    "mle_gym/nomad2018-predict-transparent-conductors-v0",
    "mle_gym/spooky-author-identification-v0",
    "mle_gym/tgs-salt-identification-challenge-v0",
]
REST = sorted({mle_gym.env_id(task.name) for task in mle_gym.list_tasks()} - set(SAMPLE))


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stand-ins")


def make(env_id: str, stand_ins: Path) -> gym.Env[str, str]:
    """An environment of a task; of a competition on the smallest stand-in data."""
    tags = mle_gym.get_task(env_id).tags
    options = {"data": "synthetic", "size": "tiny", "data_dir": str(stand_ins)} if "mlebench" in tags else {}
    return gym.make(env_id, cores=0, **options)


@pytest.mark.parametrize("env_id", [*SAMPLE, *(pytest.param(env_id, marks=pytest.mark.slow) for env_id in REST)])
def test_check_env_has_nothing_to_say(env_id: str, stand_ins: Path, capsys: pytest.CaptureFixture[str]) -> None:
    env = make(env_id, stand_ins)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env.unwrapped)
    assert [str(warning.message) for warning in caught] == []
    assert "a new episode" in capsys.readouterr().out  # check_env makes the human render mode as well.
    env.close()


@pytest.mark.parametrize("env_id", [*SAMPLE, *(pytest.param(env_id, marks=pytest.mark.slow) for env_id in REST)])
def test_the_sample_submission_scores_everywhere(env_id: str, stand_ins: Path) -> None:
    env = make(env_id, stand_ins)
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step(answer(COPY))
    if "us-patent" in env_id:  # a constant, whose correlation is not defined
        assert (info["outcome"], "is not a number" in info["message"], reward) == ("invalid_submission", True, -9.9)
        return
    assert (info["outcome"], terminated) == ("scored", True)
    task = env.unwrapped.task  # type: ignore[attr-defined]
    assert reward == min(max(info["score"] if task.higher_is_better else -info["score"], -9.0), 10.0)
    env.close()


def test_two_episodes_of_one_seed_have_one_prompt() -> None:
    env = gym.make(SAMPLE[0])
    prompts = {env.reset(seed=3)[0] for _ in range(2)}
    assert len(prompts) == 1
    env.close()


def test_make_is_cheap() -> None:
    gym.make(SAMPLE[0]).close()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        gym.make(SAMPLE[0])
        times.append(time.perf_counter() - start)
    # The best of five: this machine may be busy with other things.
    assert min(times) < 0.02


def test_wrappers_of_gymnasium_work() -> None:
    env = gym.wrappers.RecordEpisodeStatistics(gym.make(SAMPLE[0], cores=0))
    env.reset(seed=0)
    *_, info = env.step(answer(COPY))
    assert info["episode"]["r"] == 0.5
    env.close()
