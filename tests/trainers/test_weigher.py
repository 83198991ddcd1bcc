"""What the weights read off samples: wall or CPU time, one task or several; and how fast a run could be."""

from __future__ import annotations

import json

import pytest

from trainers.common.config import WeightsConfig
from trainers.common.sample import Generation, Sample
from trainers.common.throughput import Throughput
from trainers.common.weigher import Weigher

GENERATION = Generation("", "", (), (), (), (), 1.0, True)


def sample(task: str, wall: float, cpu: float | None = None) -> Sample:
    return Sample(0, GENERATION, task, 0, 0.0, True, wall, "scored", 0, 0, 0, wall, {"cpu_time": cpu})


def test_a_sleeper_gains_nothing_from_cpu_time() -> None:
    batch = [sample("t", 1.0, 1.0), sample("t", 9.0, 1.0)]
    assert Weigher(WeightsConfig()).weigh(batch).values.tolist() == pytest.approx([0.2, 1.8])
    assert Weigher(WeightsConfig(measure="cpu")).weigh(batch).values.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match=r"needs the cpu_time of every program, and t gives None; use 'wall'"):
        Weigher(WeightsConfig(measure="cpu")).weigh([sample("t", 1.0)])


def test_a_slow_task_does_not_outweigh_a_fast_one() -> None:
    weigher = Weigher(WeightsConfig(normalise="task_median"))
    batch = [sample("fast", 1.0), sample("fast", 3.0), sample("slow", 100.0), sample("slow", 300.0)]
    # Medians 2 and 200 of this first batch: 0.5, 1.5, 0.5, 1.5.
    assert weigher.weigh(batch).values.tolist() == pytest.approx([0.5, 1.5, 0.5, 1.5])
    # The second batch is measured by the first: 4 / 2 against 100 / 200, over their mean of 1.25.
    later = [sample("fast", 4.0), sample("slow", 100.0)]
    twin = Weigher(WeightsConfig(normalise="task_median"))
    twin.restore(json.loads(json.dumps(weigher.state())))
    for either in (weigher, twin):
        assert either.weigh(later).values.tolist() == pytest.approx([1.6, 0.4])
    # Within one task, a common factor is lost in the batch's mean.
    alone = [sample("fast", 1.0), sample("fast", 3.0)]
    assert weigher.weigh(alone).values.tolist() == Weigher(WeightsConfig()).weigh(alone).values.tolist()


def test_floors_and_caps_are_counted() -> None:
    weights = Weigher(WeightsConfig(min_duration=1.0, cap=1.5)).weigh([sample("t", s) for s in (0.2, 1.0, 1.0, 9.0)])
    # 1, 1, 1, 9 over their mean of 3.
    assert weights.values.tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1.5])
    assert (weights.floored, weights.capped, weights.unsupported) == (0.25, 0.25, 0.0)
    assert weights.lost_mass == pytest.approx(1.5)


def test_the_limit_is_the_slowest_stage() -> None:
    throughput = Throughput(slots=4)
    assert set(throughput.metrics().values()) == {None}
    throughput.add(wall=10.0, programs=20, program_seconds=40.0, generated=20, generate_seconds=4.0)
    throughput.add(trained=16, learn_seconds=2.0)
    assert throughput.metrics() == pytest.approx(
        {
            "rate_samples": 1.6,
            "limit_executors": 2.0,  # 4 slots over 2 s
            "limit_generator": 5.0,
            "limit_learner": 8.0,
            "limit_samples": 2.0,
            "limit_share": 0.8,
        }
    )
    with pytest.raises(KeyError):
        throughput.add(walls=1.0)
