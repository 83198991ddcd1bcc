"""Makes the tiny language model: a byte-level BPE trained on demonstrations, and a small Qwen2 with random weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from trainers.common.policy import Policy

__all__ = ["TinyConfig", "make_tiny", "train_tokenizer"]

_END, _USER, _ASSISTANT = "<|end|>", "<|user|>", "<|assistant|>"
_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ '<|end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


@dataclass(frozen=True)
class TinyConfig:
    """Shape of the tiny language model."""

    vocabulary: int = 1024
    """Tokens, 256 bytes and 3 special ones among them."""
    token_length: int = 12
    """Most characters of a token; tokens may span words, never lines."""
    layers: int = 4
    width: int = 192
    heads: int = 4
    kv_heads: int = 2
    feed_forward: int = 512
    context: int = 2048
    """Most tokens of prompt and response."""


def train_tokenizer(texts: Iterable[str], vocabulary: int, token_length: int) -> Any:
    """Return a byte-level BPE tokenizer (any text can be encoded) with a chat template.

    Programs repeat whole phrases such as ``pd.read_csv(``. Tokens that may span words halve the length of a response,
    and so the time to sample it and to learn from it.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\n+[^\n]*|[^\n]+"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[_END, _USER, _ASSISTANT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=token_length,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=_END,
        pad_token=_END,
        chat_template=_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def make_tiny(texts: Iterable[str], config: TinyConfig = TinyConfig(), *, seed: int = 0) -> Policy:
    """Return an untrained policy whose tokenizer was trained on ``texts``."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    tokenizer = train_tokenizer(texts, config.vocabulary, config.token_length)
    end = tokenizer.convert_tokens_to_ids(_END)
    shape = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=config.width,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        intermediate_size=config.feed_forward,
        max_position_embeddings=config.context,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=end,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(shape)
    return Policy(model.eval(), tokenizer, name="tiny")
