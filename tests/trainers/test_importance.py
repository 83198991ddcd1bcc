"""Importance weights and score centering by enumeration of every response, in float64.

Responses have at most three tokens out of three; token 0 ends one. The sampler q is another policy than p. Means are
sums over all responses or all groups of responses, so nothing here is a matter of chance.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch

from tests.trainers.test_losses import Enumeration
from trainers.common.advantages import leave_one_out
from trainers.common.importance import ImportanceWeight, centering_term
from trainers.common.losses import weighted_reinforce

WEIGHTS = {
    "truncated": ImportanceWeight(high=1.2),
    "masked": ImportanceWeight(0.7, 1.5, masked=True),
    "exact": ImportanceWeight(high=math.inf),
}


def f(weight: ImportanceWeight, ratio: np.ndarray) -> np.ndarray:
    """The weight's definition."""
    if weight.masked:
        return np.where((ratio >= weight.low) & (ratio <= weight.high), ratio, 0.0)
    return np.minimum(ratio, weight.high)


class World:
    """A policy p, a sampler q, rewards, and every response with its chance under q."""

    def __init__(self, gap: float = 1.0, seed: int = 0) -> None:
        self.case = Enumeration(seed)
        noise = torch.randn(self.case.logits.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
        self.q_logits = self.case.logits.detach() + gap * noise
        self.responses = self.case.responses
        self.log_q, self.mask = self.case.logprobs(self.q_logits)
        self.chance = self.log_q.sum(1).exp().numpy()
        self.rewards = np.random.default_rng(3).normal(3.0, 1.0, len(self.responses))
        self.rows = np.array([[self.case.row[r[:t]] if t < len(r) else 0 for t in range(3)] for r in self.responses])
        self.p = torch.softmax(self.case.logits.detach(), -1).numpy()
        self.q = torch.softmax(self.q_logits, -1).numpy()

    def scores(self, weight: ImportanceWeight, centering: str = "none", outside: int = 0) -> np.ndarray:
        """Gradient of each response's objective at advantage 1, from the loss itself: [R, logits]."""
        log_p, _ = self.case.logprobs(self.case.logits)
        rows = torch.tensor(self.rows)
        whole, sampler = torch.log_softmax(self.case.logits, -1)[rows], torch.log_softmax(self.q_logits, -1)[rows]
        term = None
        if centering == "full":
            term = centering_term(whole, sampler, weight, complete=True)
        elif centering == "top_k":
            kept = sampler.topk(3 - outside, dim=-1).indices
            term = centering_term(whole.gather(-1, kept), sampler.gather(-1, kept), weight, complete=False)
        result = []
        for i in range(len(self.responses)):
            one = torch.ones(1, dtype=torch.float64)
            loss = weighted_reinforce(
                log_p[i : i + 1],
                self.log_q[i : i + 1],
                self.mask[i : i + 1],
                one,
                one,
                weight=weight,
                centering=None if term is None else term[i : i + 1],
                total_tokens=1.0,
            )
            result.append(-torch.autograd.grad(loss.value, self.case.logits, retain_graph=True)[0].flatten().numpy())
        return np.array(result)

    def drift(self, weight: ImportanceWeight) -> np.ndarray:
        """m(h) = sum_v q_v w_v (e_v - p) at every history, by its definition: [H, logits]."""
        result = np.zeros((len(self.p), self.p.size))
        for h, (p, q) in enumerate(zip(self.p, self.q, strict=True)):
            for v in range(3):
                result[h, 3 * h : 3 * h + 3] += q[v] * f(weight, p / q)[v] * (np.eye(3)[v] - p)
        return result

    def estimand(self, weight: ImportanceWeight) -> np.ndarray:
        """K = E_q[sum_t R (w_t s_t - m_t)], by its definition, without the code under test."""
        drift, total = self.drift(weight), np.zeros(self.p.size)
        for i, response in enumerate(self.responses):
            for t, token in enumerate(response):
                h = self.case.row[response[:t]]
                score = np.zeros(self.p.size)
                score[3 * h : 3 * h + 3] = np.eye(3)[token] - self.p[h]
                total += self.chance[i] * self.rewards[i] * (f(weight, self.p[h] / self.q[h])[token] * score - drift[h])
        return total

    def covariance(self, weight: ImportanceWeight) -> np.ndarray:
        """sum_t Cov_q(V(h_t), m(h_t)): the closed form of the group mean's bias. After the end m is 0."""
        drift, total = self.drift(weight), np.zeros(self.p.size)
        for t in range(3):
            product, first, second = np.zeros(self.p.size), 0.0, np.zeros(self.p.size)
            for i, response in enumerate(self.responses):
                m = drift[self.case.row[response[:t]]] if t < len(response) else np.zeros(self.p.size)
                # E[V m] = E[R m], as m depends on the history alone.
                product += self.chance[i] * self.rewards[i] * m
                first += self.chance[i] * self.rewards[i]
                second += self.chance[i] * m
            total += product - first * second
        return total

    def group_mean(self, scores: np.ndarray, size: int = 2) -> np.ndarray:
        """E over all groups of (1/G) sum_i A_i a_i with the baseline of the trainer."""
        total = np.zeros(self.p.size)
        for group in itertools.product(range(len(self.responses)), repeat=size):
            indices = list(group)
            advantages = leave_one_out(self.rewards[indices], ["same"] * size)
            total += np.prod(self.chance[indices]) * (advantages @ scores[indices]) / size
        return total


@pytest.fixture(scope="module")
def world() -> World:
    made = World()
    assert made.chance.sum() == pytest.approx(1.0, abs=1e-12)
    ratio = made.p / made.q
    # Both bounds of both weights bind somewhere, and not everywhere.
    assert (ratio > 1.5).any()
    assert (ratio < 0.7).any()
    assert ((ratio > 0.7) & (ratio < 1.2)).any()
    return made


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("complete", [True, False])
def test_nothing_is_taken_off_where_the_policy_is_the_sampler(name: str, complete: bool) -> None:
    same = World(gap=0.0)
    whole = torch.log_softmax(same.case.logits, -1)
    some = whole if complete else whole[:, :2]
    term = centering_term(some, some.detach(), WEIGHTS[name], complete=complete)
    assert float(term.detach().abs().max()) < 1e-12
    assert float(torch.autograd.grad(term.sum(), same.case.logits)[0].abs().max()) < 1e-12
    plain = same.scores(WEIGHTS["exact"])
    np.testing.assert_allclose(same.scores(WEIGHTS[name], "full"), plain, atol=1e-12)


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_correction_is_the_mean_of_the_weighted_score(world: World, name: str) -> None:
    """Against the definition, and against the loss as it is written down: sum_v sg(q_v w_v) log p_v."""
    weight = WEIGHTS[name]
    expected = world.drift(weight)
    for h in range(len(world.p)):
        log_p, log_q = torch.log_softmax(world.case.logits, -1)[h], torch.tensor(world.q[h]).log()
        term = centering_term(log_p, log_q, weight, complete=True)
        got = torch.autograd.grad(term, world.case.logits, retain_graph=True)[0].flatten().numpy()
        np.testing.assert_allclose(got, expected[h], atol=1e-12)
        written = (torch.tensor(world.q[h] * f(weight, world.p[h] / world.q[h])) * log_p).sum()
        literal = torch.autograd.grad(written, world.case.logits)[0].flatten().numpy()
        np.testing.assert_allclose(got, literal, atol=1e-12)
    assert (np.abs(expected).max() < 1e-12) == (name == "exact")


@pytest.mark.parametrize("name", ["truncated", "masked"])
def test_a_constant_reward_has_no_expected_gradient_only_with_centering(world: World, name: str) -> None:
    for centering, outside in (("full", 0), ("top_k", 0), ("top_k", 1)):
        # One token outside the candidates is proportional to itself: the top-k form is exact there too.
        mean = world.chance @ world.scores(WEIGHTS[name], centering, outside)
        assert np.abs(mean).max() < (1e-12 if centering == "full" or outside else 1e-5), centering
    assert np.abs(world.chance @ world.scores(WEIGHTS[name])).max() > 0.01


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("size", [2, 3])
def test_the_group_mean_alone_is_biased_by_a_covariance_and_centering_removes_it(
    world: World, name: str, size: int
) -> None:
    weight = WEIGHTS[name]
    plain, centred = world.scores(weight), world.scores(weight, "full")
    estimand, bias = world.estimand(weight), world.covariance(weight)
    np.testing.assert_allclose(world.group_mean(plain, size) - estimand, bias, atol=1e-12)
    np.testing.assert_allclose(world.group_mean(centred, size), estimand, atol=1e-12)
    # Centering alone is unbiased too; with neither all of E[V m] is left.
    np.testing.assert_allclose((world.chance * world.rewards) @ centred, estimand, atol=1e-12)
    neither = np.abs((world.chance * world.rewards) @ plain - estimand).max()
    if name == "exact":
        assert np.abs(bias).max() < 1e-12
        assert neither < 1e-12
    else:
        assert np.abs(bias).max() > 1e-3
        assert neither > 3 * np.abs(bias).max()


@pytest.mark.parametrize("cap", [1.2, math.inf])
def test_at_the_sequence_level_the_group_mean_has_centred_already(world: World, cap: float) -> None:
    """With one weight for a whole response, group mean and group mean with centering agree for every single group."""
    log_p, _ = world.case.logprobs(world.case.logits)
    gradients = np.array(
        [torch.autograd.grad(row, world.case.logits, retain_graph=True)[0].flatten().numpy() for row in log_p.sum(1)]
    )
    ratio = (log_p.detach() - world.log_q).sum(1).exp().numpy()
    weighted = np.minimum(ratio, cap)[:, None] * gradients
    mean = world.chance @ weighted
    assert (np.abs(mean).max() > 0.01) == (cap == 1.2)
    for group in itertools.product(range(len(world.responses)), repeat=3):
        advantages = leave_one_out(world.rewards[list(group)], ["same"] * 3)
        plain, centred = advantages @ weighted[list(group)], advantages @ (weighted[list(group)] - mean)
        np.testing.assert_allclose(plain, centred, atol=1e-11)
    # Group mean: unbiased for Cov_q(R, w S).
    centred_rewards = world.rewards - world.chance @ world.rewards
    np.testing.assert_allclose(world.group_mean(weighted), (world.chance * centred_rewards) @ weighted, atol=1e-12)


@pytest.mark.parametrize("name", ["truncated", "masked"])
def test_top_k_is_exact_where_the_tail_is_proportional(name: str) -> None:
    generator = torch.Generator().manual_seed(4)
    logits = torch.randn(50, dtype=torch.float64, generator=generator).requires_grad_()
    p = torch.softmax(logits.detach(), -1)
    q = p.clone()
    q[:8] *= torch.tensor([0.2, 3.0, 0.9, 1.6, 0.4, 0.6, 2.0, 1.0], dtype=torch.float64)
    q /= q.sum()
    weight = WEIGHTS[name]
    log_p = torch.log_softmax(logits, -1)

    def gradient(kept: slice, complete: bool) -> Any:
        term = centering_term(log_p[kept], q.log()[kept], weight, complete=complete)
        return torch.autograd.grad(term, logits, retain_graph=True)[0]

    whole = gradient(slice(None), True)
    torch.testing.assert_close(gradient(slice(8), False), whole, atol=1e-12, rtol=0)
    assert float(whole.abs().max()) > 1e-3
    # By hand: tail = (1 - sum q) / (1 - sum p), alpha = tail f(1 / tail).
    tail = float((1 - q[:8].sum()) / (1 - p[:8].sum()))
    alpha = tail * float(f(weight, np.array(1 / tail)))
    by_hand = (q[:8] * torch.tensor(f(weight, (p / q)[:8].numpy())) - alpha * p[:8]) @ log_p.detach()[:8]
    torch.testing.assert_close(centering_term(log_p[:8], q.log()[:8], weight, complete=False).detach(), by_hand)


def test_bounds_by_hand() -> None:
    ratios = torch.tensor([0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0], dtype=torch.float64)
    truncated, masked = ImportanceWeight(high=2.0), ImportanceWeight(0.5, 5.0, masked=True)
    np.testing.assert_allclose(truncated(ratios.log()), [0.1, 0.5, 1, 2, 2, 2, 2], rtol=1e-12)
    # The bounds themselves are in; log and exp may move them by a rounding.
    inner = masked(torch.tensor([0.1, 0.51, 1.0, 4.99, 5.01, 8.0], dtype=torch.float64).log())
    np.testing.assert_allclose(inner, [0, 0.51, 1, 4.99, 0, 0], rtol=1e-12)
    log_p = torch.tensor([-0.5, -800.0, -0.5, -0.5], dtype=torch.float64)
    log_q = torch.tensor([-800.0, -0.5, -math.inf, -0.6], dtype=torch.float64)
    expected = np.exp([-0.5, -0.5, -0.5, -0.5]) * [0, 0, 0, 1]
    for weight in (truncated, masked):
        np.testing.assert_allclose(weight.mass(log_p, log_q), expected, atol=1e-300)
    assert float(ImportanceWeight(high=math.inf).mass(log_p, log_q)[0]) == pytest.approx(math.exp(-0.5))
    for low, high in ((0.5, 0.9), (1.1, 2.0), (-0.1, 2.0), (0.5, math.nan)):
        with pytest.raises(ValueError, match="must hold 1"):
            ImportanceWeight(low, high)


def test_candidates_that_do_not_exist_have_no_part() -> None:
    """Rows padded to a common number of candidates: minus infinity in both, and no nan in the gradient."""
    logits = torch.randn(2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    log_q = torch.log_softmax(torch.tensor([[0.3, -0.2], [1.0, 0.1]], dtype=torch.float64), -1)
    log_p = torch.log_softmax(logits[:, :2], -1)
    nothing = torch.full((2, 2), -math.inf, dtype=torch.float64)
    weight = ImportanceWeight(high=1.1)
    short = centering_term(log_p, log_q, weight, complete=True)
    padded = centering_term(torch.cat([log_p, nothing], 1), torch.cat([log_q, nothing], 1), weight, complete=True)
    torch.testing.assert_close(padded, short)
    one, other = (torch.autograd.grad(term.sum(), logits, retain_graph=True)[0] for term in (short, padded))
    torch.testing.assert_close(other, one)
    assert torch.isfinite(other).all()


def test_weighted_reinforce_equals_the_sum_over_tokens() -> None:
    rng = np.random.default_rng(5)
    new, old = -rng.gamma(2.0, size=(5, 7)), -rng.gamma(2.0, size=(5, 7))
    mask = np.arange(7) < np.array([7, 1, 4, 6, 3])[:, None]
    advantages, weights, centering = rng.normal(size=(5, 7)), rng.gamma(1.0, size=5), rng.normal(size=(5, 7))
    total, outside = 0.0, 0
    for i, j in itertools.product(range(5), range(7)):
        if mask[i, j]:
            ratio = math.exp(new[i, j] - old[i, j])
            total += weights[i] * advantages[i, j] * (min(ratio, 2.0) * new[i, j] - centering[i, j])
            outside += ratio > 2.0
    new[~mask], old[~mask], centering[~mask] = math.nan, math.inf, math.nan
    tensor = torch.tensor(new).requires_grad_()
    loss = weighted_reinforce(
        tensor,
        torch.tensor(old),
        torch.tensor(mask),
        torch.tensor(advantages),
        torch.tensor(weights),
        weight=ImportanceWeight(),
        centering=torch.tensor(centering),
        total_tokens=float(mask.sum()),
    )
    assert float(loss.value.detach()) == pytest.approx(-total / mask.sum(), rel=1e-12)
    assert loss.statistics["clip_share"] == pytest.approx(outside / mask.sum())
    loss.value.backward()
    bounded = np.minimum(np.exp(new - old), 2.0) * advantages * weights[:, None] / mask.sum()
    np.testing.assert_allclose(tensor.grad.numpy()[mask], -bounded[mask], rtol=1e-12)
    assert float(tensor.grad[~torch.tensor(mask)].abs().sum()) == 0
