"""Policy: loading, tokens, and log-probabilities against transformers' own forward pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from trainers.common import token_logprobs
from trainers.common.load_model import PolicyUnavailable
from trainers.common.policy import Policy
from trainers.sft.tiny_model import make_tiny

PROMPTS = [[5, 6, 7, 8, 9]] * 4
RESPONSES = [[11, 12, 13, 0], [21, 22], [31, 0], [41, 42, 43, 44, 45, 46, 0]]


def reference(policy: Policy, prompt: list[int], response: list[int], temperature: float) -> np.ndarray:
    """Row by row, whole sequence, float64 numpy: the definition."""
    with torch.no_grad():
        logits = policy.model(input_ids=torch.tensor([prompt + response])).logits[0].double().numpy() / temperature
    shifted = logits - logits.max(-1, keepdims=True)
    logprobs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return logprobs[len(prompt) - 1 : len(prompt) + len(response) - 1]


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logprobs_equal_the_definition(any_policy: Policy, temperature: float) -> None:
    prompts = [[5, 6, 7, 8, 9], [5, 6, 7, 8, 9], [60, 61], [5, 6, 7, 8, 9]]
    got = any_policy.token_logprobs(prompts, RESPONSES, temperature=temperature, full=True)
    assert got.logprobs.shape == got.entropy.shape == got.mask.shape == (4, 7)
    assert got.logprobs.dtype == torch.float32
    assert got.full is not None
    for row, (prompt, response) in enumerate(zip(prompts, RESPONSES, strict=True)):
        whole = reference(any_policy, prompt, response, temperature)
        n = len(response)
        assert got.mask[row].tolist() == [True] * n + [False] * (7 - n)
        np.testing.assert_allclose(got.full[row, :n].detach().numpy(), whole, atol=2e-5)
        np.testing.assert_allclose(got.logprobs[row, :n].detach().numpy(), whole[range(n), response], atol=2e-5)
        np.testing.assert_allclose(got.entropy[row, :n].detach().numpy(), -(np.exp(whole) * whole).sum(-1), atol=2e-5)
        assert not got.logprobs[row, n:].any()
        assert not got.entropy[row, n:].any()


def test_shared_prompt_gives_the_same_values_and_gradients(policy: Policy) -> None:
    weights = torch.randn(4, 7, generator=torch.Generator().manual_seed(1))

    def run(shared: bool) -> tuple[torch.Tensor, list[torch.Tensor]]:
        policy.model.zero_grad()
        out = policy.token_logprobs(PROMPTS, RESPONSES, shared=shared)
        (out.logprobs * weights + 0.1 * out.entropy).sum().backward()
        return out.logprobs.detach(), [p.grad.clone() for p in policy.parameters() if p.grad is not None]

    (a, grads_a), (b, grads_b) = run(True), run(False)
    torch.testing.assert_close(a, b, atol=1e-5, rtol=0)
    assert len(grads_a) == len(grads_b) == len(list(policy.parameters()))
    for x, y in zip(grads_a, grads_b, strict=True):
        torch.testing.assert_close(x, y, atol=1e-5 * float(y.abs().max() + 1), rtol=1e-4)


def test_shared_prompt_is_used_by_itself(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[int] = []
    features = policy.backbone.features
    monkeypatch.setattr(
        policy.backbone, "features", lambda ids, **kw: (fed.append(ids.numel()), features(ids, **kw))[1]
    )
    policy.token_logprobs(PROMPTS, RESPONSES)
    assert fed == [5, 4 * 6]


def test_sliding_windows_refuse_sharing_only_when_forced(make_policy: Callable[[str], Policy]) -> None:
    policy = make_policy("gemma2")
    assert not policy.backbone.split
    with pytest.raises(ValueError, match="cannot be shared"):
        policy.token_logprobs(PROMPTS, RESPONSES, shared=True)


def test_chunks_change_nothing(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> tuple[torch.Tensor, torch.Tensor]:
        policy.model.zero_grad()
        out = policy.token_logprobs(PROMPTS, RESPONSES, temperature=0.9)
        (out.logprobs.sum() + out.entropy.sum()).backward()
        return out.logprobs.detach(), policy.model.lm_head.weight.grad.clone()

    whole = run()
    monkeypatch.setattr(token_logprobs, "_CHUNK", 600)
    for a, b in zip(run(), whole, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_hidden_states_feed_the_head(any_policy: Policy) -> None:
    """The last hidden state, also of a model that caps what its head gives (gemma2)."""
    out = any_policy.token_logprobs(PROMPTS, RESPONSES, hidden=True, full=True)
    assert out.hidden is not None
    assert out.full is not None
    assert out.hidden.shape[-1] == any_policy.backbone.hidden_size == 32
    logits = any_policy.model.get_output_embeddings()(out.hidden)
    cap = getattr(any_policy.model.config, "final_logit_softcapping", None)
    expected = torch.log_softmax(logits if cap is None else cap * torch.tanh(logits / cap), -1)
    torch.testing.assert_close(out.full[out.mask], expected[out.mask], atol=1e-5, rtol=0)
    plain = any_policy.token_logprobs(PROMPTS, RESPONSES)
    torch.testing.assert_close(plain.logprobs, out.logprobs, atol=1e-6, rtol=0)


@pytest.mark.parametrize("chunk", [None, 600])
def test_candidates_are_picked_from_the_distribution(
    any_policy: Policy, monkeypatch: pytest.MonkeyPatch, chunk: int | None
) -> None:
    ids = torch.randint(0, 250, (4, 7, 5), generator=torch.Generator().manual_seed(1))
    whole = any_policy.token_logprobs(PROMPTS, RESPONSES, temperature=0.8, full=True)
    if chunk is not None:
        monkeypatch.setattr(token_logprobs, "_CHUNK", chunk)
    some = any_policy.token_logprobs(PROMPTS, RESPONSES, temperature=0.8, candidates=ids)
    assert whole.full is not None
    assert some.candidates is not None
    torch.testing.assert_close(some.candidates[some.mask], whole.full.gather(-1, ids)[some.mask], atol=1e-5, rtol=1e-5)
    assert float(some.candidates[~some.mask].detach().abs().sum()) == 0
    any_policy.model.zero_grad()
    some.candidates.sum().backward()
    assert any_policy.model.get_output_embeddings().weight.grad.abs().sum() > 0
    any_policy.model.zero_grad()


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_mix_of_prompts_and_lengths(data: st.DataObject, make_policy: Callable[[str], Policy]) -> None:
    policy = make_policy("qwen2")
    token = st.integers(0, 250)
    pool = data.draw(st.lists(st.lists(token, min_size=1, max_size=5), min_size=1, max_size=3))
    prompts = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=5))
    responses = data.draw(st.lists(st.lists(token, max_size=6), min_size=len(prompts), max_size=len(prompts)))
    with torch.no_grad():
        got = policy.token_logprobs(prompts, responses)
    for row, (prompt, response) in enumerate(zip(prompts, responses, strict=True)):
        whole = reference(policy, prompt, response, 1.0)
        np.testing.assert_allclose(
            got.logprobs[row, : len(response)].numpy(), whole[range(len(response)), response], atol=2e-5
        )


@pytest.mark.parametrize(
    ("prompts", "responses", "temperature", "message"),
    [
        ([[1]], [], 1.0, "1 prompts and 0 responses"),
        ([[]], [[1]], 1.0, "no tokens"),
        ([[1]], [[1]], 0.0, "must be positive"),
    ],
)
def test_bad_arguments(
    policy: Policy, prompts: list[list[int]], responses: list[list[int]], temperature: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        policy.token_logprobs(prompts, responses, temperature=temperature)


def test_save_and_load_round_trip(policy: Policy, tmp_path: Path) -> None:
    policy.save(tmp_path / "p")
    again = Policy.load(tmp_path / "p", device="cpu")
    for a, b in zip(policy.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
    text = "import pandas as pd\nnaïve = '→ 漢'\n"
    assert again.encode_prompt(text) == policy.encode_prompt(text)
    assert again.decode(again.encode_response(text)) == text
    assert again.encode_response(text)[-1] in again.stop_ids
    assert next(Policy.load(tmp_path / "p", dtype="bfloat16", device="cpu").parameters()).dtype == torch.bfloat16


def test_a_tokenizer_of_its_own_survives_a_qwen2_model(tmp_path: Path) -> None:
    # Its tokens span words, which a Qwen2 tokenizer with the same vocabulary never yields.
    text = "Fit random forest on the numeric columns.\nmodel.fit(x, y)\n"
    policy = make_tiny([text] * 20)
    policy.save(tmp_path / "tiny")
    again = Policy.load(tmp_path / "tiny", device="cpu")
    cut = Tokenizer.from_file(str(tmp_path / "tiny" / "tokenizer.json")).encode(text, add_special_tokens=False)
    assert any("\u0120" in token.strip("\u0120") for token in cut.tokens)
    assert again.encode_response(text)[:-1] == cut.ids == policy.encode_response(text)[:-1]


def test_prompts_without_template_get_a_separator(policy: Policy) -> None:
    assert policy.decode(policy.encode_prompt("fit")) == "fit\n"


def test_chat_template_is_used(policy: Policy, tmp_path: Path) -> None:
    policy.save(tmp_path / "chat")
    again = Policy.load(tmp_path / "chat", device="cpu")
    again.tokenizer.chat_template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[answer]"
    assert again.decode(again.encode_prompt("fit")) == "[user]fit[answer]"


@pytest.mark.parametrize("name", ["./no/such/folder", "/no/such/model", "no_such_file.gguf"])
def test_missing_models_are_one_sentence(name: str) -> None:
    with pytest.raises(PolicyUnavailable, match=r"There is no .*; give") as caught:
        Policy.load(name)
    assert "\n" not in str(caught.value)


def test_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(PolicyUnavailable, match="holds no model"):
        Policy.load(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(PolicyUnavailable, match="cannot be loaded"):
        Policy.load(tmp_path)


def test_unknown_dtype() -> None:
    with pytest.raises(ValueError, match="'int3' is not known"):
        Policy.load("tiny", dtype="int3")
