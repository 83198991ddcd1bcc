"""The value head on models of several architectures: a gradient of its own, and a state that continues bit for bit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from trainers.common.checkpoint import Checkpoints
from trainers.common.critic import Critic
from trainers.common.policy import Policy

PROMPTS = [[5, 6, 7]] * 3
RESPONSES = [[11, 12, 13, 0], [21, 22], [31]]


def test_a_value_for_each_token_of_any_model(any_policy: Policy) -> None:
    torch.manual_seed(0)
    critic = Critic(any_policy, learning_rate=0.01, max_grad_norm=1.0)
    scored = any_policy.token_logprobs(PROMPTS, RESPONSES, hidden=True)
    assert scored.hidden is not None
    assert critic.start(-3.0)
    assert not critic.start(5.0)
    values = critic.values(scored.hidden, scored.mask)
    assert values.shape == scored.mask.shape
    assert values.dtype == torch.float32
    assert values[scored.mask].tolist() == [-3.0] * 7
    assert values[~scored.mask].tolist() == [0.0] * 5
    any_policy.model.zero_grad()
    for _ in range(30):
        loss = (critic.values(scored.hidden, scored.mask) - 1.0)[scored.mask].square().mean()
        loss.backward()
        critic.step()
    assert float(loss.detach()) < 8.0  # from 16
    assert all(parameter.grad is None for parameter in any_policy.parameters())
    # The value of a token is that of the hidden state before it: another token changes those after it alone.
    other = any_policy.token_logprobs(PROMPTS, [[11, 12, 99, 0], [21, 22], [31]], hidden=True)
    assert other.hidden is not None
    one, two = critic.values(scored.hidden, scored.mask)[0], critic.values(other.hidden, other.mask)[0]
    torch.testing.assert_close(one[:3], two[:3], atol=1e-5, rtol=0)
    assert float((one[3] - two[3]).detach().abs()) > 1e-6


def test_its_state_continues_bit_for_bit(policy: Policy, tmp_path: Path) -> None:

    scored = policy.token_logprobs(PROMPTS, RESPONSES, hidden=True)
    assert scored.hidden is not None

    def train(critic: Critic) -> list[float]:
        losses = []
        for _ in range(5):
            loss = (critic.values(scored.hidden, scored.mask) - 1.0)[scored.mask].square().mean()
            loss.backward()
            critic.step()
            losses.append(float(loss.detach()))
        return losses

    first = Critic(policy, learning_rate=0.01, max_grad_norm=1.0)
    first.start(-1.0)
    train(first)
    folder = Checkpoints(tmp_path / "c").save(1, policy, {"critic": first.state()})
    second = Critic(policy, learning_rate=0.5, max_grad_norm=1.0)
    second.restore(Checkpoints.load(folder)["critic"])
    assert not second.start(7.0)
    assert json.dumps(train(first)) == json.dumps(train(second))
    for one, two in zip(first.head.parameters(), second.head.parameters(), strict=True):
        assert torch.equal(one, two)


def test_a_gradient_that_is_no_number_changes_nothing(policy: Policy) -> None:
    critic = Critic(policy, learning_rate=0.01, max_grad_norm=1.0)
    before = [parameter.detach().clone() for parameter in critic.head.parameters()]
    scored = policy.token_logprobs(PROMPTS, RESPONSES, hidden=True)
    assert scored.hidden is not None
    (critic.values(scored.hidden, scored.mask) * float("inf")).sum().backward()
    with pytest.raises(FloatingPointError, match="critic's gradient norm"):
        critic.step()
    assert all(torch.equal(old, new) for old, new in zip(before, critic.head.parameters(), strict=True))
