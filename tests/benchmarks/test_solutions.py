"""The committed program of each Lite competition, run on stand-in data."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import pytest

import mle_gym
from mle_gym.tasks.mlebench.catalogue import catalogue

FOLDER = Path(__file__).parents[2] / "benchmarks" / "solutions"
LITE = {name: facts.module for name, facts in catalogue().items() if "lite" in facts.splits}
FAST = ("nomad2018-predict-transparent-conductors", "spooky-author-identification")


def test_every_lite_competition_has_one() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__") == sorted(LITE.values())


@pytest.mark.parametrize("name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in sorted(LITE)])
def test_it_beats_the_sample_submission_clearly(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.getbasetemp() / "lite"
    source = (FOLDER / f"{LITE[name]}.py").read_text()
    env = gym.make(
        mle_gym.env_id(name), data="synthetic", data_dir=str(root), reward_split="all", cores=0, time_limit=120
    )
    env.reset(seed=0)
    _, _, _, _, info = env.step(f"A baseline.\n```python\n{source}\n```")
    env.close()
    assert info["outcome"] == "scored", info["message"] + info["terminal_output"]
    assert info["data"] == "synthetic"
    data = mle_gym.get_task(name).load(data="synthetic", data_dir=root)
    sample, best = data.sample_score("all"), data.grade(data.gold, "all").score  # type: ignore[attr-defined]
    # At least a fifth of the way from the sample submission to perfect answers.
    assert (info["score"] - sample) / (best - sample) > 0.2
