"""Baselines by hand, GAE against Stable-Baselines3."""

from __future__ import annotations

import itertools
import json

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.buffers import RolloutBuffer

from trainers.common.advantages import RunningMean, RunningScale, gae, leave_one_out, shape_advantages


def test_leave_one_out_is_the_reward_less_the_mean_of_the_others() -> None:
    rewards = [1.0, 2.0, 6.0, -10.0, 4.0, 4.0]
    groups = ["a", "a", "a", "alone", "b", "b"]
    expected = [1 - 4, 2 - 3.5, 6 - 1.5, float("nan"), 0, 0]
    assert leave_one_out(rewards, groups).tolist() == pytest.approx(expected, nan_ok=True)


def test_leave_one_out_does_not_mix_groups() -> None:
    rng = np.random.default_rng(0)
    rewards, groups = rng.normal(size=40), rng.integers(0, 5, size=40)
    result = leave_one_out(rewards, groups.tolist())
    for index in range(40):
        others = [rewards[j] for j in range(40) if j != index and groups[j] == groups[index]]
        assert result[index] == pytest.approx(rewards[index] - np.mean(others))


def test_leave_one_out_gradient_is_the_true_gradient_by_enumeration() -> None:
    """E over all pairs of (1/2) sum_i A_i grad log pi(y_i) equals grad E[R], exactly."""
    logits = torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64, requires_grad=True)
    rewards = torch.tensor([1.0, -10.0, 4.0], dtype=torch.float64)
    probabilities = torch.softmax(logits, 0)
    true = torch.autograd.grad(probabilities @ rewards, logits, retain_graph=True)[0]
    score = torch.autograd.functional.jacobian(lambda x: torch.log_softmax(x, 0), logits)
    estimate = torch.zeros(3, dtype=torch.float64)
    for pair in itertools.product(range(3), repeat=2):
        advantages = leave_one_out([float(rewards[i]) for i in pair], ["same", "same"])
        chance = float((probabilities[pair[0]] * probabilities[pair[1]]).detach())
        estimate += chance * sum(advantages[k] * score[i] for k, i in enumerate(pair)) / 2
    torch.testing.assert_close(estimate, true, rtol=0, atol=1e-12)


def test_running_mean_starts_at_the_first_batch_and_moves_by_its_decay() -> None:
    means = RunningMean(decay=0.9)
    assert means.get("task") is None
    means.update("task", [1.0, 3.0])
    assert means.get("task") == 2.0
    means.update("task", [12.0])
    assert means.get("task") == pytest.approx(0.9 * 2 + 0.1 * 12)
    assert means.get("other") is None
    twin = RunningMean(decay=0.9)
    twin.restore(json.loads(json.dumps(means.state())))
    assert twin.get("task") == means.get("task")
    with pytest.raises(ValueError, match="decay"):
        RunningMean(decay=1.0)


def test_running_scale_divides_by_the_averaged_root_mean_square() -> None:
    scale = RunningScale(decay=0.5)
    assert scale.normalise(np.array([3.0, -4.0])).tolist() == pytest.approx(np.array([3, -4]) / np.sqrt(12.5))
    assert scale.normalise(np.array([1.0, 1.0])).tolist() == pytest.approx(np.array([1, 1]) / np.sqrt(0.5 * 13.5))
    twin = RunningScale(decay=0.5)
    twin.restore(json.loads(json.dumps(scale.state())))
    assert twin.normalise(np.array([2.0])).tolist() == scale.normalise(np.array([2.0])).tolist()
    assert RunningScale().normalise(np.zeros(3)).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="decay"):
        RunningScale(decay=-0.1)


def test_shaping_scales_the_negative_side_then_clips_both() -> None:
    shaped = shape_advantages(np.array([-10.0, -1.0, 0.0, 2.0, 9.0]), negative_scale=0.2, clip=1.5)
    assert shaped.tolist() == pytest.approx([-1.5, -0.2, 0.0, 1.5, 1.5])
    assert shape_advantages(np.array([-10.0, 9.0])).tolist() == [-10.0, 9.0]


@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 1.0), (0.99, 0.95), (0.9, 0.0)])
def test_gae_equals_stable_baselines3(gamma: float, lam: float) -> None:
    steps, envs = 13, 3
    rng = np.random.default_rng(1)
    rewards, values = rng.normal(size=(steps, envs)), rng.normal(size=(steps, envs))
    ended, last = rng.random((steps, envs)) < 0.25, rng.normal(size=envs)
    box = gym.spaces.Box(-1, 1, (1,))
    buffer = RolloutBuffer(steps, box, box, device="cpu", gae_lambda=lam, gamma=gamma, n_envs=envs)
    starts = np.zeros(envs)
    for step in range(steps):
        zeros = np.zeros((envs, 1))
        buffer.add(zeros, zeros, rewards[step], starts, torch.tensor(values[step]), torch.zeros(envs))
        starts = ended[step].astype(float)
    buffer.compute_returns_and_advantage(torch.tensor(last, dtype=torch.float32), ended[-1])
    ours = gae(rewards, values, last, ended, gamma=gamma, lam=lam)
    np.testing.assert_allclose(ours, buffer.advantages, rtol=2e-5, atol=2e-6)  # theirs is float32


def test_gae_with_unit_gamma_and_lambda_is_return_less_value() -> None:
    advantages = gae([1.0, 2.0, 3.0], [0.5, 0.5, 0.5], 9.0, [False, False, True])
    assert advantages.tolist() == [5.5, 4.5, 2.5]


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="group keys"):
        leave_one_out([1.0, 2.0], ["a"])
    with pytest.raises(ValueError, match="Shapes differ"):
        gae([1.0], [1.0, 2.0], 0.0, [False])
