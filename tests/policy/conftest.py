"""Small random models of several architectures; their log-probabilities are checked against transformers itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from trainers.common.policy import Policy

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    text = ["import pandas as pd\ntrain = pd.read_csv('input/train.csv')\n", "model.fit(x, y)\n"] * 20
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(text, vocab_size=300, special_tokens=["<|end|>"], show_progress=False)
    return PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, eos_token="<|end|>")


def _common(tokenizer: PreTrainedTokenizerFast) -> dict[str, int]:
    return {"vocab_size": len(tokenizer), "eos_token_id": 0, "bos_token_id": None, "pad_token_id": None}


@pytest.fixture(scope="session", params=["qwen2", "llama", "gpt2", "gemma2"])
def any_policy(request: pytest.FixtureRequest, tokenizer: PreTrainedTokenizerFast) -> Policy:
    """Grouped queries (qwen2, llama), learned positions (gpt2), sliding windows and soft-capped logits (gemma2)."""
    return build(request.param, tokenizer)


@pytest.fixture(scope="session")
def make_policy(tokenizer: PreTrainedTokenizerFast) -> Callable[[str], Policy]:
    """The same policy at every call."""
    return lambda kind: build(kind, tokenizer)


@pytest.fixture
def policy(tokenizer: PreTrainedTokenizerFast) -> Policy:
    return build("qwen2", tokenizer)


def build(kind: str, tokenizer: PreTrainedTokenizerFast) -> Policy:
    torch.manual_seed(0)
    shape = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 48,
        "max_position_embeddings": 128,
        "initializer_range": 0.2,
        **_common(tokenizer),
    }
    if kind == "qwen2":
        model = Qwen2ForCausalLM(Qwen2Config(**shape, tie_word_embeddings=True))
    elif kind == "llama":
        model = LlamaForCausalLM(LlamaConfig(**shape))
    elif kind == "gpt2":
        model = GPT2LMHeadModel(
            GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=128, initializer_range=0.2, **_common(tokenizer))
        )
    else:
        model = Gemma2ForCausalLM(
            Gemma2Config(
                **shape, head_dim=8, sliding_window=16, final_logit_softcapping=2.0, attn_logit_softcapping=None
            )
        )
    # Several stop tokens, so that random models end some responses early.
    model.generation_config.eos_token_id = list(range(30))
    return Policy(model.eval(), tokenizer)
