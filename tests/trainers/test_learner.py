"""One update: the gradient of the whole batch, however it is split; plug-ins; what is refused."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from trainers.async_ppo.algorithm import AsyncPPO
from trainers.common.algorithm import Algorithm, AlgorithmNotFound, TokenBatch, find_algorithm
from trainers.common.config import AlgorithmConfig, WeightsConfig
from trainers.common.learner import Learner
from trainers.common.losses import Loss, token_mean
from trainers.common.policy import Policy
from trainers.common.sample import Sample
from trainers.common.transformers_generator import TransformersGenerator


class Reinforce(Algorithm):
    """Reward times score: the smallest plug-in there is."""

    @dataclasses.dataclass(frozen=True)
    class Options:
        shift: float = 0.0

    def advantages(self, samples: Sequence[Sample]) -> Any:
        return np.array([sample.reward - self.options.shift for sample in samples])

    def loss(self, batch: TokenBatch) -> Loss:
        weighted = batch.logprobs * (batch.advantages * batch.weights)[:, None]
        return Loss(-token_mean(weighted, batch.mask, batch.total_tokens))


@pytest.fixture
def policy(tiny_folder: Path) -> Policy:
    return Policy.load(tiny_folder)


@pytest.fixture
def samples(policy: Policy) -> list[Sample]:
    generations = TransformersGenerator(policy).generate(["pull"] * 12, temperature=0.7, max_new_tokens=5, seed=3)
    rng = np.random.default_rng(0)
    return [
        Sample(i, g, "task", 1, float(rng.normal()), True, float(rng.gamma(1.0)), "scored", 0, 0, 0, 0)
        for i, g in enumerate(generations)
    ]


def learner(policy: Policy, algorithm: Algorithm | None = None, **config: Any) -> Learner:
    return Learner(
        policy,
        algorithm or AsyncPPO(AsyncPPO.Options()),
        AlgorithmConfig(learning_rate=0.01, **config),
        WeightsConfig(),
        policy.frozen_copy(),
    )


def test_the_first_step_is_the_weighted_policy_gradient(policy: Policy, samples: list[Sample]) -> None:
    """At the behaviour policy the clipped loss has the gradient of sum w A log pi / tokens, here with transformers."""
    reference = copy.deepcopy(policy.model)
    rewards = np.array([sample.reward for sample in samples])
    advantages = (rewards - rewards.mean()) * 12 / 11
    advantages /= np.sqrt(np.mean(advantages**2))
    durations = np.maximum([sample.duration for sample in samples], 0.1)
    weights = durations / durations.mean()
    tokens = sum(len(sample.generation.response_ids) for sample in samples)
    loss = torch.zeros(())
    for sample, advantage, weight in zip(samples, advantages, weights, strict=True):
        ids = [*sample.generation.prompt_ids, *sample.generation.response_ids]
        logits = reference(input_ids=torch.tensor([ids])).logits[0] / 0.7
        start = len(sample.generation.prompt_ids)
        picked = torch.log_softmax(logits, -1)[range(start - 1, len(ids) - 1), ids[start:]]
        loss = loss - float(advantage * weight) * picked.sum() / tokens
    loss.backward()
    updated = learner(policy, max_grad_norm=1e9)
    metrics = updated.update(samples)
    for (name, expected), parameter in zip(reference.named_parameters(), policy.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, expected.grad, rtol=1e-3, atol=1e-6, msg=name)
    assert metrics["approx_kl"] == pytest.approx(0.0, abs=1e-5)
    assert metrics["weight_effective"] == pytest.approx(weights.sum() ** 2 / np.sum(weights**2))


@pytest.mark.parametrize("kind", ["k3", "exact"])
def test_micro_batches_change_nothing(tiny_folder: Path, samples: list[Sample], kind: str) -> None:
    options = AsyncPPO.Options(kl=0.1, kl_kind=kind, entropy=0.01)  # type: ignore[arg-type]
    results = []
    for micro_batch in (0, 5):
        policy = Policy.load(tiny_folder)
        metrics = learner(policy, AsyncPPO(options), micro_batch=micro_batch, epochs=3).update(samples)
        results.append(([p.detach().clone() for p in policy.parameters()], metrics))
    for whole, split in zip(results[0][0], results[1][0], strict=True):
        torch.testing.assert_close(whole, split, rtol=1e-4, atol=1e-5)
    for key in ("loss", "policy_loss", "entropy", "kl", "clip_share", "max_ratio", "last_epoch_approx_kl"):
        assert results[0][1][key] == pytest.approx(results[1][1][key], rel=1e-3, abs=1e-5), key
    for half in ("drift_fast", "drift_slow"):
        assert results[0][1][half] == pytest.approx(results[1][1][half], abs=1e-5)
    assert results[0][1]["kl"] == pytest.approx(0.0, abs=1e-6)
    assert results[0][1]["last_epoch_kl"] > 1e-5


def test_drift_is_reported_apart_for_slow_programs(policy: Policy, samples: list[Sample]) -> None:
    """Samples whose recorded log-probabilities are off by 0.5 are the slow half."""
    median = sorted(sample.duration for sample in samples)[len(samples) // 2]
    old = [
        dataclasses.replace(
            sample,
            generation=dataclasses.replace(
                sample.generation, logprobs=tuple(value - 0.5 for value in sample.generation.logprobs)
            ),
        )
        if sample.duration >= median
        else sample
        for sample in samples
    ]
    metrics = learner(policy, micro_batch=4).update(old)
    assert metrics["drift_fast"] == pytest.approx(0.0, abs=1e-5)
    assert metrics["drift_slow"] == pytest.approx(0.5, abs=1e-5)


def test_a_plug_in_is_found_and_learns(policy: Policy, samples: list[Sample]) -> None:
    kind = find_algorithm("tests.trainers.test_learner:Reinforce")
    assert kind.__name__ == "Reinforce"
    assert issubclass(kind, Algorithm)
    assert find_algorithm("async_ppo") is AsyncPPO
    before = policy.token_logprobs([samples[0].generation.prompt_ids], [samples[0].generation.response_ids])
    good = [dataclasses.replace(sample, reward=1.0) for sample in samples[:1] * 3]
    one = learner(policy, Reinforce(Reinforce.Options()))
    for _ in range(5):
        one.update(good)
    after = policy.token_logprobs([samples[0].generation.prompt_ids], [samples[0].generation.response_ids])
    assert float(after.logprobs.detach().sum()) > float(before.logprobs.detach().sum()) + 0.1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ppo", "There is no algorithm 'ppo'; known are: async_ppo"),
        ("no.such:Thing", "cannot be imported"),
        ("json:NoSuch", "cannot be imported"),
        ("json:JSONDecoder", "not a subclass"),
    ],
)
def test_unknown_algorithms_are_named(name: str, message: str) -> None:
    with pytest.raises(AlgorithmNotFound, match=message):
        find_algorithm(name)


def test_impossible_batches_are_refused(policy: Policy, samples: list[Sample]) -> None:
    one = learner(policy)
    with pytest.raises(ValueError, match="only valid ones"):
        one.update([dataclasses.replace(samples[0], reward_valid=False)])
    other = dataclasses.replace(samples[0].generation, temperature=1.0)
    with pytest.raises(ValueError, match="different temperatures"):
        one.update([samples[1], dataclasses.replace(samples[0], generation=other)])
    with pytest.raises(ValueError, match="finite numbers"):
        one.update([dataclasses.replace(samples[0], reward=float("nan")), samples[1]])
    with pytest.raises(ValueError, match="needs the start policy"):
        Learner(policy, AsyncPPO(AsyncPPO.Options(kl=0.1)), AlgorithmConfig(), WeightsConfig())


def test_an_infinite_loss_leaves_the_parameters_alone(policy: Policy, samples: list[Sample]) -> None:
    one = learner(policy, Reinforce(Reinforce.Options()))
    before = [p.detach().clone() for p in policy.parameters()]
    huge = [dataclasses.replace(sample, reward=1e38) for sample in samples]
    with pytest.raises(FloatingPointError, match="not finite"):
        one.update(huge)
    assert all(torch.equal(old, new) for old, new in zip(before, policy.parameters(), strict=True))


def test_baselines_stand_in_for_each_other() -> None:
    def sample(task: str, group: int, reward: float) -> Sample:
        return Sample(0, None, task, group, reward, True, 1.0, "scored", 0, 0, 0, 0)  # type: ignore[arg-type]

    algorithm = AsyncPPO(AsyncPPO.Options(normalise=False))
    batch = [sample("a", 1, 1.0), sample("a", 1, 3.0), sample("b", 2, 7.0)]
    # Alone with its prompt and no past: no signal rather than the raw reward.
    assert algorithm.advantages(batch).tolist() == [-2.0, 2.0, 0.0]
    assert algorithm.advantages([sample("b", 3, 9.0)]).tolist() == [2.0]  # past mean of b is 7
    running = AsyncPPO(AsyncPPO.Options(normalise=False, baseline="running_mean", negative_scale=0.5))
    assert running.advantages(batch).tolist() == [-1.0, 2.0, 0.0]  # no past yet: the others
    assert running.advantages(batch).tolist() == [-0.5, 1.0, 0.0]  # past means 2 and 7
    twin = AsyncPPO(AsyncPPO.Options(normalise=False, baseline="running_mean", negative_scale=0.5))
    twin.restore(running.state())
    assert twin.advantages(batch).tolist() == running.advantages(batch).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"clip": 0.0}, "clip"), ({"negative_scale": 1.5}, "negative_scale"), ({"kl": -1.0}, "kl")],
)
def test_impossible_options_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AsyncPPO(AsyncPPO.Options(**options))  # type: ignore[arg-type]
