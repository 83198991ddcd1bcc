"""Losses against float64 by hand, Stable-Baselines3's PPO, and exact enumeration."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger
from torch import Tensor

from trainers.common.losses import entropy_bonus, exact_kl, k3_kl, ppo_clip, token_mean


def by_hand(
    new: np.ndarray, old: np.ndarray, mask: np.ndarray, advantages: np.ndarray, weights: np.ndarray, clip: float
) -> float:
    """One token at a time."""
    total = 0.0
    for i, j in itertools.product(*map(range, new.shape)):
        if mask[i, j]:
            ratio = math.exp(new[i, j] - old[i, j])
            bounded = min(max(ratio, 1 - clip), 1 + clip)
            total += weights[i] * min(ratio * advantages[i], bounded * advantages[i])
    return -total / mask.sum()


def random_case(seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    new, old = -rng.gamma(2.0, size=(5, 7)), -rng.gamma(2.0, size=(5, 7))
    lengths = np.array([7, 1, 4, 6, 3])
    mask = np.arange(7) < lengths[:, None]
    return new, old, mask, rng.normal(size=5), rng.gamma(1.0, size=5)


def test_ppo_clip_equals_the_sum_over_tokens() -> None:
    new, old, mask, advantages, weights = random_case()
    loss = ppo_clip(*map(torch.tensor, (new, old, mask, advantages, weights)), clip=0.2, total_tokens=float(mask.sum()))
    assert float(loss.value) == pytest.approx(by_hand(new, old, mask, advantages, weights, 0.2), rel=1e-12)
    ratio = np.exp(new - old)[mask]
    assert loss.statistics["clip_share"] == pytest.approx(np.mean(np.abs(ratio - 1) > 0.2))
    assert loss.statistics["max_ratio"] == pytest.approx(ratio.max())
    assert loss.statistics["min_ratio"] == pytest.approx(ratio.min())
    assert loss.statistics["ess_share"] == pytest.approx(ratio.sum() ** 2 / np.sum(ratio**2) / len(ratio))
    assert loss.statistics["approx_kl"] == pytest.approx(np.mean(ratio - 1 - np.log(ratio)))


def test_ppo_clip_does_not_depend_on_how_the_batch_is_split() -> None:
    case = tuple(map(torch.tensor, random_case()))
    total = float(case[2].sum())
    whole = ppo_clip(*case, clip=0.2, total_tokens=total).value
    parts = sum(
        ppo_clip(*(tensor[rows] for tensor in case), clip=0.2, total_tokens=total).value
        for rows in (slice(0, 2), slice(2, 5))
    )
    torch.testing.assert_close(parts, whole)


def test_ppo_clip_ignores_whatever_padding_holds() -> None:
    new, old, mask, advantages, weights = map(torch.tensor, random_case())
    total = float(mask.sum())
    clean = ppo_clip(new, old, mask, advantages, weights, clip=0.2, total_tokens=total)
    dirty = new.masked_fill(~mask, math.nan).requires_grad_()
    loss = ppo_clip(dirty, old.masked_fill(~mask, math.inf), mask, advantages, weights, clip=0.2, total_tokens=total)
    torch.testing.assert_close(loss.value, clean.value)
    loss.value.backward()
    assert torch.isfinite(dirty.grad[mask]).all()


@pytest.mark.filterwarnings("ignore")
def test_ppo_clip_equals_stable_baselines3() -> None:
    """One epoch of their PPO on perturbed old log-probabilities; every action is a response of one token."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PPO(
            "MlpPolicy",
            gym.make("CartPole-v1"),
            n_steps=64,
            batch_size=64,
            n_epochs=1,
            normalize_advantage=False,
            clip_range=0.2,
            seed=0,
            device="cpu",
        )
    records: dict[str, Any] = {}

    class Recorder(Logger):
        def record(self, key: str, value: Any, exclude: Any = None) -> None:
            records[key] = value

    model.set_logger(Recorder(None, []))
    _, callback = model._setup_learn(64, None)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 64)
    buffer = model.rollout_buffer
    buffer.log_probs += np.random.default_rng(0).normal(0, 0.3, buffer.log_probs.shape).astype(np.float32)
    observations = torch.tensor(buffer.observations.reshape(64, 4))
    actions = torch.tensor(buffer.actions.reshape(64))
    with torch.no_grad():
        _, logprobs, _ = model.policy.evaluate_actions(observations, actions)
    loss = ppo_clip(
        logprobs[:, None],
        torch.tensor(buffer.log_probs.reshape(64, 1)),
        torch.ones(64, 1, dtype=torch.bool),
        torch.tensor(buffer.advantages.reshape(64)),
        torch.ones(64),
        clip=0.2,
        total_tokens=64.0,
    )
    model.train()  # logs the loss before its only step
    assert float(loss.value) == pytest.approx(records["train/policy_gradient_loss"], rel=1e-5)
    assert loss.statistics["clip_share"] == pytest.approx(records["train/clip_fraction"])
    assert loss.statistics["approx_kl"] == pytest.approx(records["train/approx_kl"], rel=1e-4)


class Enumeration:
    """A policy over all responses of at most three tokens of a vocabulary of three, token 0 ends a response."""

    def __init__(self, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        histories = [h for n in range(3) for h in itertools.product((1, 2), repeat=n)]
        self.row = {history: index for index, history in enumerate(histories)}
        self.logits = torch.randn(len(histories), 3, dtype=torch.float64, generator=generator).requires_grad_()
        self.responses = [(*h, 0) for h in histories] + list(itertools.product((1, 2), repeat=3))

    def logprobs(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """[R, 3] log-probabilities of each response's tokens and the mask."""
        table = torch.log_softmax(logits, -1)
        values, mask = [], []
        for response in self.responses:
            tokens = [table[self.row[response[:t]], token] for t, token in enumerate(response)]
            missing = 3 - len(tokens)
            values.append(torch.stack(tokens + [table.new_zeros(())] * missing))
            mask.append([True] * len(tokens) + [False] * missing)
        return torch.stack(values), torch.tensor(mask)

    def expected_gradient(self, advantages: Tensor, weights: Tensor) -> Tensor:
        """Gradient of the loss's expectation over responses of the policy itself."""
        new, mask = self.logprobs(self.logits)
        old = new.detach()
        chance = old.sum(1).exp()
        assert float(chance.sum()) == pytest.approx(1.0, abs=1e-12)
        total = sum(
            chance[i]
            * ppo_clip(
                new[i : i + 1],
                old[i : i + 1],
                mask[i : i + 1],
                advantages[i : i + 1],
                weights[i : i + 1],
                clip=0.2,
                total_tokens=1.0,
            ).value
            for i in range(len(self.responses))
        )
        return torch.autograd.grad(total, self.logits)[0]


def test_a_constant_reward_has_no_expected_gradient() -> None:
    case = Enumeration()
    ones = torch.ones(len(case.responses), dtype=torch.float64)
    assert float(case.expected_gradient(-10 * ones, ones).abs().max()) < 1e-12


def test_the_expected_gradient_is_that_of_the_expected_reward() -> None:
    case = Enumeration(1)
    rewards = torch.randn(len(case.responses), dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    new, _ = case.logprobs(case.logits)
    true = torch.autograd.grad(-(new.sum(1).exp() @ rewards), case.logits)[0]
    torch.testing.assert_close(case.expected_gradient(rewards, torch.ones_like(rewards)), true, rtol=0, atol=1e-12)


def test_under_duration_weights_a_constant_does_push() -> None:
    """Why a baseline has to come off before the weight: E[d * c * score] = c * grad E[d]."""
    case = Enumeration(1)
    durations = torch.rand(len(case.responses), dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    new, _ = case.logprobs(case.logits)
    push = torch.autograd.grad(-(new.sum(1).exp() @ durations), case.logits)[0]
    constant = torch.full_like(durations, -10.0)
    torch.testing.assert_close(case.expected_gradient(constant, durations), -10 * push, rtol=0, atol=1e-12)
    assert float(push.abs().max()) > 0.01


def test_k3_is_unbiased_for_the_exact_divergence() -> None:
    """The mean of k3 over the policy's own tokens is the KL that the exact form sums over the vocabulary."""
    generator = torch.Generator().manual_seed(0)
    policy = torch.log_softmax(torch.randn(1, 4, 6, dtype=torch.float64, generator=generator), -1)
    start = torch.log_softmax(torch.randn(1, 4, 6, dtype=torch.float64, generator=generator), -1)
    mask = torch.tensor([[True, True, True, False]])
    exact = exact_kl(policy, start, mask, total_tokens=3.0)
    expected = torch.distributions.kl_divergence(
        torch.distributions.Categorical(logits=policy), torch.distributions.Categorical(logits=start)
    )[mask].mean()
    torch.testing.assert_close(exact.value, expected)
    estimate = sum(
        policy[..., v].exp() * ((start - policy)[..., v].exp() - 1 - (start - policy)[..., v]) for v in range(6)
    )
    torch.testing.assert_close(token_mean(estimate, mask, 3.0), exact.value)
    k3 = k3_kl(policy[..., 0], start[..., 0], mask, total_tokens=3.0)
    r = (start - policy)[..., 0][mask].exp()
    torch.testing.assert_close(k3.value, (r - 1 - r.log()).mean())
    assert k3.statistics["kl"] == pytest.approx(float(k3.value))
    assert float(k3_kl(policy[..., 0], policy[..., 0], mask, total_tokens=3.0).value) == 0.0


def test_entropy_bonus_is_minus_the_mean_over_tokens() -> None:
    entropy = torch.tensor([[1.0, 2.0, 99.0]])
    loss = entropy_bonus(entropy, torch.tensor([[True, True, False]]), total_tokens=2.0)
    assert float(loss.value) == -1.5
    assert loss.statistics["entropy"] == 1.5


def test_statistics_of_a_micro_batch_are_per_token_of_its_own() -> None:
    entropy, mask = torch.tensor([[1.0, 3.0]]), torch.tensor([[True, True]])
    assert entropy_bonus(entropy, mask, total_tokens=8.0).statistics["entropy"] == pytest.approx(2.0)
