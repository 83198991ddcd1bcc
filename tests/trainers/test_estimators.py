"""The estimators of the reference algorithm: decoupled PPO, the critic, GRPO's scales; whole runs with each."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.buffers import RolloutBuffer

from mle_gym import cli
from tests.trainers.test_async_ppo import BANDIT, assert_same_run, changed, lines
from tests.trainers.test_losses import random_case
from trainers.async_ppo.algorithm import AsyncPPO
from trainers.async_ppo.run import run_training
from trainers.common.advantages import leave_one_out, over_group_std
from trainers.common.candidates import Candidates
from trainers.common.checkpoint import Checkpoints
from trainers.common.config import AlgorithmConfig, ConfigError, GenerationConfig, TrainConfig, WeightsConfig
from trainers.common.learner import Learner
from trainers.common.losses import decoupled_ppo, ppo_clip, value_loss
from trainers.common.policy import Policy
from trainers.common.rollout import Rollout
from trainers.common.sample import Sample
from trainers.common.scoring import score
from trainers.common.transformers_generator import TransformersGenerator


def options(**values: Any) -> AsyncPPO.Options:
    return AsyncPPO.Options(**values)


def draw(policy: Policy, count: int = 12, longest: int = 5, **sampling: Any) -> list[Sample]:
    generator = TransformersGenerator(policy, **sampling)
    generations = generator.generate(["pull"] * count, temperature=0.7, max_new_tokens=longest, seed=3)
    rng = np.random.default_rng(0)
    return [
        Sample(i, g, "task", 1, float(rng.normal()), True, float(rng.gamma(1.0)), "scored", 0, 0, 0, 0)
        for i, g in enumerate(generations)
    ]


def move(policy: Policy, size: float = 0.05) -> None:
    """Make the policy another one than the sampler's."""
    noise = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(size * torch.randn(parameter.shape, generator=noise))


def learner(policy: Policy, micro_batch: int = 16, epochs: int = 1, **values: Any) -> Learner:
    config = AlgorithmConfig(
        learning_rate=0.01, critic_learning_rate=0.02, micro_batch=micro_batch, epochs=epochs, max_grad_norm=1e9
    )
    return Learner(policy, AsyncPPO(options(normalise=False, **values)), config, WeightsConfig(rule="none"))


# --- losses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cap", [None, 1.5])
def test_decoupled_ppo_by_hand(cap: float | None) -> None:
    new, old, mask, advantages, weights = random_case()
    proximal = -np.random.default_rng(9).gamma(2.0, size=new.shape)
    total, gradient = 0.0, np.zeros_like(new)
    for i, j in itertools.product(*map(range, new.shape)):
        if mask[i, j]:
            age = math.exp(proximal[i, j] - old[i, j])
            age = age if cap is None else min(age, cap)
            ratio = math.exp(new[i, j] - proximal[i, j])
            bounded = min(max(ratio, 0.8), 1.2)
            total += weights[i] * age * min(ratio * advantages[i], bounded * advantages[i])
            if ratio * advantages[i] <= bounded * advantages[i]:
                gradient[i, j] = -weights[i] * age * ratio * advantages[i] / mask.sum()
    tensor = torch.tensor(new).requires_grad_()
    loss = decoupled_ppo(
        tensor,
        *map(torch.tensor, (proximal, old, mask, advantages, weights)),
        clip=0.2,
        cap=cap,
        total_tokens=float(mask.sum()),
    )
    assert float(loss.value.detach()) == pytest.approx(-total / mask.sum(), rel=1e-12)
    loss.value.backward()
    np.testing.assert_allclose(tensor.grad.numpy(), gradient, atol=1e-14)
    ratios = np.exp(proximal - old)[mask]
    assert loss.statistics["max_behaviour_ratio"] == pytest.approx(ratios.max())
    assert loss.statistics["behaviour_kl"] == pytest.approx(np.mean(ratios - 1 - np.log(ratios)))


def test_decoupled_ppo_on_fresh_samples_is_ppo() -> None:
    new, old, mask, advantages, weights = map(torch.tensor, random_case(4))
    total = float(mask.sum())
    one = ppo_clip(new, old, mask, advantages, weights, clip=0.2, total_tokens=total)
    two = decoupled_ppo(new, old, old, mask, advantages, weights, clip=0.2, total_tokens=total)
    torch.testing.assert_close(one.value, two.value, rtol=0, atol=0)
    spread = ppo_clip(new, old, mask, advantages[:, None].expand(5, 7), weights, clip=0.2, total_tokens=total)
    torch.testing.assert_close(one.value, spread.value, rtol=0, atol=0)


@pytest.mark.parametrize("clip", [None, 0.3])
def test_the_value_loss_by_hand(clip: float | None) -> None:
    rng = np.random.default_rng(2)
    values, old, returns = rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    mask = np.arange(4) < np.array([4, 1, 3])[:, None]
    total = 0.0
    for i, j in itertools.product(range(3), range(4)):
        if mask[i, j]:
            near = values[i, j] if clip is None else old[i, j] + max(-clip, min(clip, values[i, j] - old[i, j]))
            total += max((values[i, j] - returns[i, j]) ** 2, (near - returns[i, j]) ** 2) / 2
    loss = value_loss(*map(torch.tensor, (values, old, returns, mask)), clip=clip, total_tokens=float(mask.sum()))
    assert float(loss.value) == pytest.approx(total / mask.sum(), rel=1e-12)
    assert loss.statistics["value_loss"] == pytest.approx(total / mask.sum())


# --- advantages -------------------------------------------------------------------------------------------------------


def responses(lengths: list[int], rewards: list[float]) -> list[Sample]:
    from trainers.common.sample import Generation

    return [
        Sample(
            i,
            Generation("p", "r", (1,), (2,) * n, (-1.0,) * n, (0,) * n, 1.0, True),
            "task",
            1,
            reward,
            True,
            1.0,
            "scored",
            0,
            0,
            0,
            0,
        )
        for i, (n, reward) in enumerate(zip(lengths, rewards, strict=True))
    ]


def test_token_advantages_by_hand() -> None:
    """gamma 0.5, lambda 0.5, rewards 8 and 2 with the last tokens of responses of two tokens and of one."""
    algorithm = AsyncPPO(options(baseline="critic", gamma=0.5, lam=0.5, normalise=False))
    values, mask = np.array([[1.0, 2.0], [5.0, 0.0]]), np.array([[True, True], [True, False]])
    advantages, returns = algorithm.token_advantages(responses([2, 1], [8.0, 2.0]), values, mask)
    last, first = 8 - 2, 0.5 * 2 - 1
    np.testing.assert_allclose(advantages[mask], [first + 0.25 * last, last, 2 - 5], atol=1e-12)
    np.testing.assert_allclose(returns[mask], [first + 0.25 * last + 1, 8, 2], atol=1e-12)
    plain = AsyncPPO(options(baseline="critic", normalise=False))
    advantages, returns = plain.token_advantages(responses([2, 1], [8.0, 2.0]), values, mask)
    np.testing.assert_allclose(advantages[mask], [8 - 1, 8 - 2, 2 - 5])
    np.testing.assert_allclose(returns[mask], [8, 8, 2])


@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 1.0), (0.99, 0.95), (0.9, 0.0)])
def test_token_advantages_equal_stable_baselines3(gamma: float, lam: float) -> None:
    lengths, rng = [5, 1, 3], np.random.default_rng(6)
    rewards = rng.normal(size=3).tolist()
    mask = np.arange(5) < np.array(lengths)[:, None]
    values = np.where(mask, rng.normal(size=(3, 5)), 0.0)
    algorithm = AsyncPPO(options(baseline="critic", gamma=gamma, lam=lam, normalise=False))
    advantages, returns = algorithm.token_advantages(responses(lengths, rewards), values, mask)
    box = gym.spaces.Box(-1, 1, (1,))
    for row, length in enumerate(lengths):
        buffer = RolloutBuffer(length, box, box, device="cpu", gae_lambda=lam, gamma=gamma, n_envs=1)
        for step in range(length):
            zero = np.zeros((1, 1))
            reward = np.array([rewards[row] if step + 1 == length else 0.0])
            buffer.add(zero, zero, reward, np.array([step == 0]), torch.tensor([values[row, step]]), torch.zeros(1))
        buffer.compute_returns_and_advantage(torch.zeros(1), np.array([True]))
        np.testing.assert_allclose(advantages[row, :length], buffer.advantages[:, 0], rtol=2e-5, atol=2e-6)
        np.testing.assert_allclose(returns[row, :length], buffer.returns[:, 0], rtol=2e-5, atol=2e-6)


def test_the_scales_of_grpo() -> None:
    rewards, groups = [1.0, 2.0, 6.0, 4.0, 4.0, 9.0], ["a", "a", "a", "b", "b", "alone"]
    got = over_group_std(leave_one_out(rewards, groups), rewards, groups)
    spread = np.std([1, 2, 6], ddof=1)
    expected = [(1 - 4) / spread, (2 - 3.5) / spread, (6 - 1.5) / spread, 0, 0, float("nan")]
    assert got.tolist() == pytest.approx(expected, nan_ok=True)
    batch = responses([1, 3], [1.0, 3.0])
    plain = AsyncPPO(options(normalise=False)).advantages(batch)
    short = AsyncPPO(options(normalise=False, sequence_mean=True)).advantages(batch)
    # Divided by 4 tokens in all, a response's tokens now count 1 / (2 responses * its length).
    np.testing.assert_allclose(short / 4, plain / (2 * np.array([1, 3])))


# --- candidates -------------------------------------------------------------------------------------------------------


@pytest.fixture
def policy(tiny_folder: Path) -> Policy:
    return Policy.load(tiny_folder, device="cpu")


def test_recording_changes_nothing_and_holds_the_sampler(policy: Policy) -> None:
    plain, some, whole = (draw(policy, record=record) for record in (0, 4, -1))
    for one, two, three in zip(plain, some, whole, strict=True):
        assert one.generation.candidates is None
        assert one.generation == dataclasses.replace(two.generation, candidates=None)
        assert one.generation == dataclasses.replace(three.generation, candidates=None)
        few, all_of_them = two.generation.candidates, three.generation.candidates
        assert few is not None
        assert all_of_them is not None
        assert all_of_them.ids is None
        with torch.no_grad():
            ids = ([one.generation.prompt_ids], [one.generation.response_ids])
            full = policy.token_logprobs(*ids, temperature=0.7, full=True).full
        assert full is not None
        torch.testing.assert_close(all_of_them.logprobs, full[0], atol=1e-5, rtol=0)
        top = full[0].topk(4)
        torch.testing.assert_close(few.logprobs, top.values, atol=1e-5, rtol=0)
        assert few.ids is not None
        assert torch.equal(few.ids.long(), top.indices)
        assert few == few
        assert few != all_of_them


@pytest.mark.parametrize("sampling", [{"top_k": 3, "record": 3}, {"top_k": 4, "top_p": 0.8, "record": -1}])
def test_truncated_sampling_is_scored_over_what_could_be_drawn(policy: Policy, sampling: dict[str, Any]) -> None:
    samples = draw(policy, count=40, **sampling)
    scored, recorded = score(policy, samples, candidates=True)
    assert recorded is not None
    assert recorded.complete
    assert scored.candidates is not None
    for row, sample in enumerate(samples):
        length = len(sample.generation.response_ids)
        torch.testing.assert_close(
            scored.logprobs[row, :length].detach(), torch.tensor(sample.generation.logprobs), atol=1e-5, rtol=0
        )
        possible = (recorded.logprobs[row, :length] > -math.inf).sum(-1)
        assert 1 <= int(possible.min()) <= int(possible.max()) <= sampling["top_k"]
    masses = scored.candidates.detach()[scored.mask].exp().sum(-1)
    torch.testing.assert_close(masses, torch.ones_like(masses))
    move(policy)
    one = learner(policy, correction="truncated_is", centering="full")
    metrics = one.update(samples)
    assert metrics["approx_kl"] > 1e-4
    assert all(torch.isfinite(parameter.grad).all() for parameter in policy.parameters())


@pytest.mark.parametrize("correction", ["truncated_is", "masked_is"])
def test_both_forms_of_centering_have_one_gradient(tiny_folder: Path, correction: str) -> None:
    """With nine of ten tokens recorded the tail is one token, where the top-k form is exact."""
    bounds = {"cap": 1.1, "mask_low": 0.9, "mask_high": 1.1}
    results = {}
    for name, record in (("none", 0), ("full", -1), ("top_k", 9)):
        for micro_batch in (16, 5):
            policy = Policy.load(tiny_folder, device="cpu")
            samples = draw(policy, record=record)
            move(policy)
            metrics = learner(policy, micro_batch, correction=correction, centering=name, **bounds).update(samples)
            assert 0.05 < metrics["clip_share"] < 0.95
            results[name, micro_batch] = torch.cat([parameter.grad.flatten() for parameter in policy.parameters()])
    for other in (("full", 5), ("top_k", 16), ("top_k", 5)):
        torch.testing.assert_close(results[other], results["full", 16], atol=2e-5, rtol=1e-3)
    assert float((results["none", 16] - results["full", 16]).abs().max()) > 1e-3


def test_the_gradient_of_a_whole_update_by_hand(policy: Policy) -> None:
    """Truncated weights with full centering: transformers' own forward pass and the loss as it is written down."""
    samples = draw(policy, record=-1)
    move(policy)
    rewards = np.array([sample.reward for sample in samples])
    advantages = (rewards - rewards.mean()) * 12 / 11
    tokens = sum(len(sample.generation.response_ids) for sample in samples)
    loss = torch.zeros((), dtype=torch.float64)
    for sample, advantage in zip(samples, advantages, strict=True):
        ids = [*sample.generation.prompt_ids, *sample.generation.response_ids]
        start = len(sample.generation.prompt_ids)
        logits = policy.model(input_ids=torch.tensor([ids])).logits[0, start - 1 : -1].double() / 0.7
        log_p, log_q = torch.log_softmax(logits, -1), sample.generation.candidates.logprobs.double()
        weight = (log_p - log_q).exp().clamp(max=1.1).detach()
        picked = torch.tensor(ids[start:])[:, None]
        drawn = (weight * log_p).gather(1, picked).sum()
        loss = loss - advantage * (drawn - (log_q.exp() * weight * log_p).sum()) / tokens
    loss.backward()
    expected = [parameter.grad.clone() for parameter in policy.parameters()]
    learner(policy, correction="truncated_is", cap=1.1, centering="full").update(samples)
    for parameter, gradient in zip(policy.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-3, atol=1e-5)


def test_candidates_of_another_distribution_are_refused(policy: Policy) -> None:
    """For example log-probabilities from before the temperature."""
    samples = draw(policy, record=4)
    generation = samples[0].generation
    raw = Candidates(generation.candidates.ids, generation.candidates.logprobs * 0.7 - 0.2, False)
    wrong = dataclasses.replace(samples[0], generation=dataclasses.replace(generation, candidates=raw))
    with pytest.raises(ValueError, match="are not those of the distribution that the tokens were drawn from"):
        score(policy, [wrong, *samples[1:]], candidates=True)
    none = dataclasses.replace(samples[0], generation=dataclasses.replace(generation, candidates=None))
    with pytest.raises(ValueError, match="all have candidates of the same kind"):
        score(policy, [none, *samples[1:]])
    with pytest.raises(ValueError, match=r"must record them \(generation.record\)"):
        learner(policy, correction="masked_is", centering="top_k").update(draw(policy))


# --- the critic -------------------------------------------------------------------------------------------------------


def test_the_critic_learns_what_to_expect_and_leaves_the_policy_alone(policy: Policy) -> None:
    """Rewards near -10 that the first of two letters decides: the value of the first is the mean, then it is known."""
    samples = [
        dataclasses.replace(sample, reward=-10.0 + 2.0 * (sample.generation.response_ids[0] >= 5))
        for sample in draw(policy, 64, longest=2)
    ]
    mean = float(np.mean([sample.reward for sample in samples]))
    one = learner(policy, 64, baseline="critic", value_clip=None)
    assert one.critic is not None
    one.config = dataclasses.replace(one.config, learning_rate=1e-30)
    before = [parameter.detach().clone() for parameter in policy.parameters()]
    history = [one.update(samples) for _ in range(60)]
    assert history[0]["value_mean"] == pytest.approx(mean, abs=1e-5)
    assert history[0]["explained_variance"] == pytest.approx(0.0, abs=1e-5)
    assert history[-1]["value_loss"] < 0.8 * history[0]["value_loss"]
    for old, new in zip(before, policy.parameters(), strict=True):
        torch.testing.assert_close(old, new)
    with torch.no_grad():
        scored, _ = score(policy, samples, hidden=True)
        assert scored.hidden is not None
        values = one.critic.values(scored.hidden, scored.mask)
    assert values[:, 0].tolist() == pytest.approx([mean] * 64, abs=0.4)
    for row, sample in enumerate(samples):
        if len(sample.generation.response_ids) == 2:
            assert float(values[row, 1]) == pytest.approx(sample.reward, abs=0.7)
        else:
            assert float(values[row, 1]) == 0.0
    # By the definition: the head on transformers' own hidden state.
    sample = samples[0].generation
    ids = torch.tensor([[*sample.prompt_ids, *sample.response_ids]])
    hidden = policy.model(input_ids=ids, output_hidden_states=True).hidden_states[-1][0]
    start = len(sample.prompt_ids) - 1
    expected = one.critic.head(hidden[start : start + len(sample.response_ids)]).squeeze(-1)
    torch.testing.assert_close(values[0, : len(sample.response_ids)], expected.detach(), atol=1e-4, rtol=1e-4)


def test_micro_batches_change_nothing_with_a_critic(tiny_folder: Path) -> None:
    results = []
    for micro_batch in (0, 5):
        torch.manual_seed(5)
        policy = Policy.load(tiny_folder, device="cpu")
        one = learner(policy, micro_batch, 3, baseline="critic", correction="decoupled_ppo", gamma=0.9, lam=0.8)
        samples = draw(policy)
        move(policy)
        metrics = [one.update(samples) for _ in range(2)]
        tensors = [*policy.parameters(), *one.critic.head.parameters()]
        results.append(([tensor.detach().clone() for tensor in tensors], metrics[1]))
    for whole, split in zip(results[0][0], results[1][0], strict=True):
        torch.testing.assert_close(whole, split, rtol=1e-3, atol=1e-4)
    for key in ("loss", "value_loss", "explained_variance", "advantage_std", "max_behaviour_ratio"):
        assert results[0][1][key] == pytest.approx(results[1][1][key], rel=1e-2, abs=1e-4), key


def test_the_proximal_policy_is_the_one_at_the_start(policy: Policy) -> None:
    samples = draw(policy)
    move(policy)
    metrics = learner(policy, epochs=2, correction="decoupled_ppo").update(samples)
    assert metrics["approx_kl"] == pytest.approx(0.0, abs=1e-6)
    assert metrics["behaviour_kl"] > 1e-3
    assert metrics["last_epoch_approx_kl"] > 1e-4
    assert metrics["last_epoch_behaviour_kl"] == pytest.approx(metrics["behaviour_kl"], rel=1e-4)


# --- whole runs -------------------------------------------------------------------------------------------------------

ARMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "critic": ({"baseline": "critic"}, {}),
    "decoupled": ({"correction": "decoupled_ppo", "baseline": "running_mean"}, {}),
    "truncated": ({"correction": "truncated_is", "centering": "top_k"}, {"record": 4}),
    "masked": ({"correction": "masked_is", "centering": "full", "baseline": "critic"}, {"record": -1, "top_k": 8}),
}


@pytest.mark.parametrize(("name", "lag"), [("critic", 1), ("truncated", 2)])
def test_it_learns(bandit_config: TrainConfig, name: str, lag: int) -> None:
    """From a uniform policy over ten letters (-1.46 per pull) to the best arm (1), on data some updates old."""
    values, sampling = ARMS[name]
    config = changed(
        bandit_config,
        admission={"lookahead": lag},
        algorithm={"options": values, "critic_learning_rate": 0.02},
        generation=sampling,
        schedule={"updates": 30, "evaluate": 0, "checkpoint_every": 30},
    )
    assert run_training(config) == 0
    summary = json.loads((Path(config.run) / "summary.json").read_text())
    assert summary["mean_reward_first"] < -0.8
    assert summary["mean_reward_last"] > 0.8
    metrics = lines(Path(config.run) / "metrics.jsonl")
    # A program that lasts longer than others may be older than the look-ahead, never younger on the whole.
    assert max(row["lag_max"] for row in metrics) >= lag
    if name == "critic":
        assert "explained_variance" in metrics[0]


@pytest.mark.parametrize("name", ["critic", "masked"])
def test_a_resumed_run_equals_an_uninterrupted_one(
    bandit_config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    values, sampling = ARMS[name]
    config = changed(
        bandit_config,
        algorithm={"options": values, "epochs": 2, "micro_batch": 6},
        generation=sampling,
        schedule={"updates": 6, "evaluate": 0, "checkpoint_every": 2},
    )
    assert run_training(config) == 0
    whole = Path(config.run)
    newest = Checkpoints(whole / "checkpoints").latest()
    assert newest is not None
    assert "critic" in Checkpoints.load(newest)["learner"]
    parts = tmp_path / "parts"
    shutil.copytree(whole, parts, ignore=shutil.ignore_patterns("checkpoints", "policy", "metrics.jsonl", "*.json"))
    (parts / "config.toml").write_text(dataclasses.replace(config, run=str(parts)).to_toml())
    stops = {(1 + max(row["recv"] for row in lines(whole / "samples.jsonl"))) * 3 // 5}
    receive = Rollout.receive

    def receive_and_stop(rollout: Rollout, timeout: float) -> list[Sample]:
        samples = receive(rollout, timeout)
        if rollout.received in stops:
            stops.clear()
            os.kill(os.getpid(), signal.SIGTERM)
        return samples

    monkeypatch.setattr(Rollout, "receive", receive_and_stop)
    assert [run_training(config, parts) for _ in range(2)] == [128 + signal.SIGTERM, 0]
    assert_same_run(whole, parts)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"centering": "full"}, "clip of ppo_clip is none, because it depends on the advantage's sign"),
        ({"centering": "top_k", "correction": "decoupled_ppo"}, "clip of decoupled_ppo is none"),
        ({"centering": "full", "correction": "masked_is", "group_std": True}, "gives every group a random one"),
        ({"centering": "full", "correction": "masked_is", "sequence_mean": True}, "is not and so acts as a reward"),
        ({"baseline": "critic", "group_std": True}, "compares with no group"),
        ({"cap": 0.5}, "cap must be 1, the ratio of a fresh token, or more"),
        ({"behaviour_cap": 0.5}, "behaviour_cap must be 1"),
        ({"mask_low": 1.5}, "mask_low and mask_high must hold 1"),
        ({"gamma": 1.5}, "gamma must be in"),
        ({"lam": -0.1}, "lam must be in"),
        ({"value_clip": 0.0}, "value_clip must be above 0"),
    ],
)
def test_wrong_options_are_refused_with_the_reason(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        options(**values)
    assert str(caught.value).count(". ") == 0
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("sampling", "message"),
    [
        ({"top_k": 5}, r"set generation.record to -1 \(or to at least 5\)"),
        ({"top_k": 5, "record": 4}, "these must be recorded"),
        ({"top_p": 0.9}, "set generation.record to -1\\."),
        ({"top_p": 0.9, "record": 128}, "these must be recorded"),
        ({"top_p": 0.0}, "top_p must be in"),
        ({"top_k": -1}, "top_k must not be negative"),
        ({"record": -2}, "record must be -1 or more"),
    ],
)
def test_a_sampler_that_nobody_can_score_is_refused(sampling: dict[str, Any], message: str, policy: Policy) -> None:
    with pytest.raises(ConfigError, match=message):
        GenerationConfig(**sampling)
    with pytest.raises(ConfigError, match=message):
        TransformersGenerator(policy, **sampling)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["algorithm.options.centering=full", "algorithm.options.correction=masked_is"], "set generation.record to -1"),
        (["algorithm.options.centering=top_k", "algorithm.options.correction=truncated_is"], "such as 128"),
        (["algorithm.options.centering=top_k"], "because it depends on the advantage's sign"),
        (["generation.top_p=0.9"], "must be taken over the tokens that could be drawn"),
        (["generation.temperature=0"], "generation.temperature must be above 0"),
        (["algorithm.options.correction=tis"], "must be one of 'ppo_clip', 'decoupled_ppo', "),
        (["algorithm.critic_learning_rate=0"], "critic_learning_rate must be above 0"),
    ],
)
def test_the_command_says_why(
    arguments: list[str], message: str, tiny_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sets = [part for argument in arguments for part in ("--set", argument)]
    assert cli.main(["train", "--env.ids", BANDIT, "--policy.name", str(tiny_folder), *sets]) == 2
    errors = capfd.readouterr().err
    assert message in errors
    assert len(errors.strip().splitlines()) == 1, errors
