"""The bandit of the bias benchmark: its gradient by autograd, its clock by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.selection import Kind, Simulation, TokenPolicy
from trainers.common.admission import DropStale, InOrder, OldestFirst, Race

KINDS = (Kind("crash", 0.3, -1.0, 0.1), Kind("fast", 0.5, 0.3, 1.0), Kind("slow", 0.2, 1.0, 10.0, cpu=1.0))


def test_the_exact_gradient_is_that_of_the_expected_reward() -> None:
    policy = TokenPolicy(KINDS)
    policy.second = np.random.default_rng(0).normal(size=(3, 3))
    first, second = (torch.tensor(values, requires_grad=True) for values in (policy.first, policy.second))
    joint = first.softmax(-1)[:, None] * second.softmax(-1)
    rewards = torch.tensor(np.array([[policy.reward((kind, other)) for other in range(3)] for kind in range(3)]))
    (joint * rewards).sum().backward()
    expected = torch.cat([first.grad, second.grad.flatten()]).numpy()  # type: ignore[list-item, union-attr]
    assert policy.exact_gradient() == pytest.approx(expected, abs=1e-12)


def test_the_synchronous_clock_is_the_slowest_of_each_batch() -> None:
    simulation = Simulation(Race(8, 1.0), TokenPolicy(KINDS), slots=8, seed=3)
    times = [batch.time for batch in simulation.batches(5)]
    seconds = np.array([value for _, value in simulation.launched.values()]).reshape(5, 8)
    assert np.diff([0.0, *times]) == pytest.approx(seconds.max(1))
    assert simulation.busy == pytest.approx(seconds.sum())


def test_with_one_slot_programs_run_one_after_the_other() -> None:
    simulation = Simulation(InOrder(4, 1), TokenPolicy(KINDS), slots=1, seed=3)
    times = [batch.time for batch in simulation.batches(5)]
    seconds = [value for _, value in simulation.launched.values()]
    assert times == pytest.approx([sum(seconds[: 4 * (number + 1)]) for number in range(5)])


@pytest.mark.parametrize("leftovers", ["keep", "cancel"])
def test_every_launch_has_one_fate(leftovers: str) -> None:
    rule = DropStale(8, 2.0, 3, leftovers)  # type: ignore[arg-type]
    simulation = Simulation(rule, TokenPolicy(KINDS), slots=16, seed=0, pause=0.2)
    batches = list(simulation.batches(60))
    assert max(batch.lags.max() for batch in batches) <= 3
    assert len(simulation.trained) == 480 == rule.trained
    assert simulation.dropped
    open_now = {*rule.running, *rule.waiting}
    assert not simulation.trained & simulation.dropped
    assert simulation.trained | simulation.dropped | open_now == set(simulation.launched)
    assert simulation.busy <= 16 * simulation.clock


def test_nothing_dropped_means_probability_one_and_cpu_time_is_reported() -> None:
    simulation = Simulation(OldestFirst(8, 2), TokenPolicy(KINDS), slots=4, seed=0)
    for batch in simulation.batches(30):
        assert batch.likely.tolist() == [1.0] * 8
        for sample, kind in zip(batch.samples, batch.kinds, strict=True):
            assert sample.info["cpu_time"] == pytest.approx(sample.duration * (0.1 if kind == 2 else 1.0))
            assert sample.queued <= sample.started
