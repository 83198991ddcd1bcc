"""TransformersGenerator: exact log-probabilities, the right distribution, determinism, weight hand-over."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from transformers import TopKLogitsWarper, TopPLogitsWarper

from trainers.common.kv_cache import DecodingCache
from trainers.common.policy import Policy
from trainers.common.transformers_generator import TransformersGenerator, truncate

PROMPTS = ["import pandas as pd"] * 5 + ["model.fit"] * 2 + ["train = pd.read_csv('input/train.csv')"]


@pytest.mark.parametrize("temperature", [1.0, 0.6, 0.0])
def test_recorded_logprobs_are_those_of_the_policy(any_policy: Policy, temperature: float) -> None:
    got = TransformersGenerator(any_policy).generate(PROMPTS, temperature=temperature, max_new_tokens=24, seed=3)
    assert len({len(g.response_ids) for g in got}) > 1 or temperature == 0
    with torch.no_grad():
        scored = any_policy.token_logprobs(
            [g.prompt_ids for g in got], [g.response_ids for g in got], temperature=temperature or 1.0
        )
    for row, g in enumerate(got):
        n = len(g.response_ids)
        assert len(g.logprobs) == len(g.versions) == n
        np.testing.assert_allclose(g.logprobs, scored.logprobs[row, :n].numpy(), atol=1e-4)
        assert list(g.prompt_ids) == any_policy.encode_prompt(g.prompt)
        assert g.finished == (g.response_ids[-1] in any_policy.stop_ids)
        assert g.finished or n == 24
        assert not any(token in any_policy.stop_ids for token in g.response_ids[:-1])
        assert g.text == any_policy.decode(g.response_ids)


def test_greedy_is_transformers_greedy(any_policy: Policy) -> None:
    generator = TransformersGenerator(any_policy)
    for prompt in dict.fromkeys(PROMPTS):
        ids = torch.tensor([any_policy.encode_prompt(prompt)])
        expected = any_policy.model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=16, pad_token_id=0
        )[0, ids.shape[1] :]
        got = generator.generate(PROMPTS, temperature=0.0, max_new_tokens=16, seed=0)
        assert next(g.response_ids for g in got if g.prompt == prompt) == tuple(expected.tolist())


def test_first_token_follows_the_distribution(policy: Policy) -> None:
    prompt = "train ="
    got = TransformersGenerator(policy, batch_size=1000).generate(
        [prompt] * 4000, temperature=1.3, max_new_tokens=1, seed=5
    )
    with torch.no_grad():
        logits = policy.model(input_ids=torch.tensor([policy.encode_prompt(prompt)])).logits[0, -1].double() / 1.3
    probabilities = torch.softmax(logits, -1).numpy()
    counts = np.bincount([g.response_ids[0] for g in got], minlength=len(probabilities))
    common = probabilities * 4000 >= 5
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(probabilities[common], probabilities[~common].sum()) * 4000
    assert chisquare(observed, expected).pvalue > 1e-3


def test_same_seed_same_bits_other_seed_other_text(policy: Policy) -> None:
    def run(seed: int) -> list[object]:
        return list(TransformersGenerator(policy).generate(PROMPTS, temperature=1.0, max_new_tokens=20, seed=seed))

    torch.manual_seed(1)
    first = run(7)
    torch.manual_seed(2)
    assert run(7) == first
    assert run(8) != first


def test_batches_do_not_change_what_is_drawn(policy: Policy) -> None:
    whole = TransformersGenerator(policy).generate(PROMPTS, temperature=1.0, max_new_tokens=20, seed=7)
    parts = TransformersGenerator(policy, batch_size=3).generate(PROMPTS, temperature=1.0, max_new_tokens=20, seed=7)
    assert [g.response_ids for g in whole] == [g.response_ids for g in parts]


def test_own_weights_until_sync(policy: Policy) -> None:
    generator = TransformersGenerator(policy)
    before = generator.generate(PROMPTS, temperature=0.0, max_new_tokens=8, seed=0)
    with torch.no_grad():
        for p in policy.parameters():
            p.add_(torch.randn(p.shape, generator=torch.Generator().manual_seed(9)) * 0.3)
    assert generator.generate(PROMPTS, temperature=0.0, max_new_tokens=8, seed=0) == before
    generator.sync(4)
    after = generator.generate(PROMPTS, temperature=0.0, max_new_tokens=8, seed=0)
    assert [g.response_ids for g in after] != [g.response_ids for g in before]
    assert {v for g in after for v in g.versions} == {4}
    assert after == [
        g
        for g in after
        if np.allclose(
            g.logprobs, policy.token_logprobs([g.prompt_ids], [g.response_ids]).logprobs[0].tolist(), atol=1e-4
        )
    ]


def test_sync_during_a_generation_waits_its_turn(policy: Policy) -> None:
    generator = TransformersGenerator(policy, batch_size=2)
    started, go = threading.Event(), threading.Event()
    features = generator._backbone.features

    def slow(*args: object, **kwargs: object) -> object:
        started.set()
        assert go.wait(20)
        return features(*args, **kwargs)  # type: ignore[arg-type]

    generator._backbone.features = slow  # type: ignore[method-assign,assignment]
    results: list[object] = []
    thread = threading.Thread(
        target=lambda: results.extend(generator.generate(PROMPTS, temperature=1.0, max_new_tokens=6, seed=1))
    )
    expected = TransformersGenerator(policy, batch_size=2).generate(PROMPTS, temperature=1.0, max_new_tokens=6, seed=1)
    thread.start()
    assert started.wait(20)
    with torch.no_grad():
        for p in policy.parameters():
            p.mul_(0.5)
    generator.sync(1)
    go.set()
    thread.join(30)
    assert results == expected
    now = generator.generate(PROMPTS[:1], temperature=1.0, max_new_tokens=6, seed=1)[0]
    assert set(now.versions) == {1}
    scored = policy.token_logprobs([now.prompt_ids], [now.response_ids]).logprobs[0]
    np.testing.assert_allclose(now.logprobs, scored.tolist(), atol=1e-4)


@given(kept=st.sets(st.integers(0, 30), min_size=1), total=st.integers(31, 40))
def test_fill_order_keeps_the_same_rows_and_moves_no_more_than_needed(kept: set[int], total: int) -> None:
    order = DecodingCache.fill_order(sorted(kept))
    assert set(order) == kept
    assert len(order) == len(kept)
    assert all(order[slot] == slot for slot in kept if slot < len(kept))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"max_new_tokens": 127}, "exceed the model's context of 128"),
    ],
)
def test_bad_arguments(policy: Policy, changes: dict[str, float], message: str) -> None:
    arguments = {"temperature": 1.0, "max_new_tokens": 4, "seed": 0, **changes}
    with pytest.raises(ValueError, match=message):
        TransformersGenerator(policy).generate(["model.fit"], **arguments)  # type: ignore[arg-type]


def test_no_prompts(policy: Policy) -> None:
    assert TransformersGenerator(policy).generate([], temperature=1.0, max_new_tokens=4, seed=0) == []


@pytest.mark.parametrize(("top_k", "top_p"), [(5, 1.0), (0, 0.7), (12, 0.6), (1, 1.0), (0, 1e-6), (10_000, 1.0)])
def test_truncation_is_that_of_transformers(top_k: int, top_p: float) -> None:
    logits = torch.randn(20, 200, generator=torch.Generator().manual_seed(0)) * 3
    expected = logits.clone()
    if top_k:
        expected = TopKLogitsWarper(top_k)(None, expected)
    if top_p < 1:
        expected = TopPLogitsWarper(top_p)(None, expected)
    got = truncate(torch.log_softmax(logits, -1), top_k, top_p)
    torch.testing.assert_close(got, torch.log_softmax(expected, -1))
