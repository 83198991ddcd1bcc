"""An algorithm of one's own is trained by the command, and computes what its docstrings say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.distributions import Categorical

from examples.my_reinforce import Reinforce
from trainers.common.algorithm import TokenBatch
from trainers.common.config import TrainConfig
from trainers.common.sample import Generation, Sample

ROOT = Path(__file__).parents[2]


def sample(reward: float, task: str = "t") -> Sample:
    generation = Generation("p", "r", (1,), (2,), (-0.5,), (0,), 1.0, True)
    return Sample(0, generation, task, 0, reward, True, 1.0, "scored", 0.0, 0.0, 0.0, 1.0)


def train(config: TrainConfig, run: Path, where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    file = run.with_suffix(".toml")
    file.write_text(config.to_toml(), encoding="utf-8")
    command = [Path(sys.executable).parent / "mle-gym", "train", "--config", file, "--run", run, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, timeout=300)


def test_the_command_trains_it(bandit_config: TrainConfig, tmp_path: Path) -> None:
    run, name = tmp_path / "run", "examples.my_reinforce:Reinforce"
    arguments = ("--set", "algorithm.options.decay=0.5", "--schedule.updates", "30", "--schedule.evaluate", "0")
    result = train(bandit_config, run, ROOT, "--algorithm", name, *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f'name = "{name}"' in (run / "config.toml").read_text(encoding="utf-8")
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    # A uniform policy over ten letters earns -1.46 per pull; the best arm pays 1.
    assert summary["mean_reward_first"] < -0.8
    assert summary["mean_reward_last"] > 0.3


def test_a_module_is_found_where_the_command_is_called(bandit_config: TrainConfig, tmp_path: Path) -> None:
    source = (ROOT / "examples" / "my_reinforce.py").read_text(encoding="utf-8")
    (tmp_path / "my_copy.py").write_text(source, encoding="utf-8")
    arguments = ("--schedule.updates", "2", "--schedule.evaluate", "0")
    result = train(bandit_config, tmp_path / "run", tmp_path, "--algorithm.name", "my_copy:Reinforce", *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    assert json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))["updates"] == 2


def test_a_wrong_name_is_one_sentence(bandit_config: TrainConfig, tmp_path: Path) -> None:
    result = train(bandit_config, tmp_path / "run", ROOT, "--algorithm", "nosuch:Thing")
    assert result.returncode == 2
    assert "nosuch:Thing" in result.stderr
    assert "Traceback" not in result.stderr


def test_baselines_come_from_earlier_batches_and_survive_a_restart() -> None:
    algorithm = Reinforce(Reinforce.Options(decay=0.75))
    assert algorithm.advantages([sample(1.0), sample(3.0), sample(10.0, "u")]).tolist() == [-1.0, 1.0, 0.0]
    assert algorithm.advantages([sample(4.0)]).tolist() == [2.0]
    # 0.75 * 2 + 0.25 * 4
    again = Reinforce(Reinforce.Options(decay=0.75))
    again.restore(json.loads(json.dumps(algorithm.state())))
    assert again.advantages([sample(4.0), sample(10.0, "u")]).tolist() == [1.5, 0.0]


def test_the_gradient_is_the_score_function_estimator() -> None:
    logits = torch.randn(3, 2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    tokens = torch.tensor([[0, 1], [4, 2], [3, 0]])
    advantages, weights = np.array([1.0, -2.0, 0.5]), np.array([1.0, 0.5, 2.0])
    mask = torch.tensor([[1.0, 1.0], [1.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    logprobs = torch.log_softmax(logits, -1).gather(-1, tokens[..., None]).squeeze(-1)
    batch = TokenBatch(
        logprobs=logprobs,
        entropy=torch.zeros(3, 2),
        behaviour=torch.zeros(3, 2),
        reference=None,
        full=None,
        reference_full=None,
        mask=mask,
        advantages=torch.tensor(advantages),
        weights=torch.tensor(weights),
        total_tokens=5.0,
    )
    Reinforce(Reinforce.Options()).loss(batch).value.backward()
    assert logits.grad is not None
    # torch.distributions' own log-probability, sample by sample and token by token.
    other = logits.detach().clone().requires_grad_()
    total = torch.zeros((), dtype=torch.float64)
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1), (2, 0)):
        gain = Categorical(logits=other[row, column]).log_prob(tokens[row, column])
        total = total - gain * advantages[row] * weights[row] / 5.0
    (expected,) = torch.autograd.grad(total, other)
    assert torch.allclose(logits.grad, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("decay", [0.0, 0.9])
def test_options_reach_it(decay: float) -> None:
    algorithm = Reinforce(Reinforce.Options(decay=decay))
    algorithm.advantages([sample(0.0)])
    algorithm.advantages([sample(1.0)])
    assert algorithm.means["t"] == pytest.approx(1 - decay)
