"""Controls take away exactly what they say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.control_algorithms import OwnData, ShuffledRewards
from trainers.async_ppo.algorithm import AsyncPPO
from trainers.common.algorithm import TokenBatch, find_algorithm
from trainers.common.sample import Generation, Sample


def sample(ticket: int, reward: float, outcome: str = "scored") -> Sample:
    generation = Generation("p", "r", (1,), (2, 3), (-0.5, -0.5), (0, 0), 1.0, True)
    return Sample(ticket, generation, "task", 0, reward, True, 1.0, outcome, 0.0, 0.0, 0.0, 1.0)


def test_shuffled_rewards_keep_the_rewards_and_lose_their_owners() -> None:
    rewards = np.arange(64, dtype=float)
    samples = [sample(ticket, reward) for ticket, reward in enumerate(rewards)]
    true = AsyncPPO(AsyncPPO.Options()).advantages(samples)
    shuffled = ShuffledRewards(AsyncPPO.Options()).advantages(samples)
    # Same values, up to the order in which floats are added ...
    assert np.sort(shuffled) == pytest.approx(np.sort(true), abs=1e-9)
    # ... in an order that says nothing about the owners: a correlation of 64 pairs has a standard error of 1/8.
    assert abs(np.corrcoef(true, shuffled)[0, 1]) < 0.4
    assert not np.allclose(true, shuffled)
    again = ShuffledRewards(AsyncPPO.Options()).advantages(samples)
    assert np.array_equal(shuffled, again), "a resumed run shuffles alike"


def test_own_data_is_the_likelihood_of_scored_programs() -> None:
    samples = [sample(0, 0.7), sample(1, -10.0, "runtime_error"), sample(2, 0.1)]
    algorithm = OwnData(OwnData.Options())
    advantages = algorithm.advantages(samples)
    assert advantages.tolist() == [1.0, 0.0, 1.0]
    logprobs = torch.tensor([[-1.0, -2.0], [-5.0, -5.0], [-0.25, 99.0]], requires_grad=True)
    mask = torch.tensor([[1.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    batch = TokenBatch(
        logprobs=logprobs,
        entropy=torch.zeros(3, 2),
        behaviour=torch.zeros(3, 2),
        reference=None,
        full=None,
        reference_full=None,
        mask=mask,
        advantages=torch.tensor(advantages),
        weights=torch.tensor([1.0, 1.0, 2.0]),
        total_tokens=5.0,
    )
    loss = algorithm.loss(batch)
    assert float(loss.value.detach()) == pytest.approx((1.0 + 2.0 + 2 * 0.25) / 5)
    loss.value.backward()
    assert logprobs.grad is not None
    assert logprobs.grad.flatten().tolist() == pytest.approx([-0.2, -0.2, 0.0, 0.0, -0.4, 0.0], abs=1e-7)


@pytest.mark.parametrize("name", ["ShuffledRewards", "OwnData"])
def test_runs_find_them_by_import_path(name: str) -> None:
    assert find_algorithm(f"benchmarks.control_algorithms:{name}").__name__ == name
