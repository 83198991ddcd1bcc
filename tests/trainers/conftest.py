"""A tiny random language model over ten letters, on disk like any other model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from trainers.common.config import TrainConfig
from trainers.common.schema import build

torch.set_num_threads(1)

LETTERS = ("<end>", "p", "u", "l", "Ċ", "a", "b", "c", "d", "x")


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    letters = Tokenizer(BPE({letter: index for index, letter in enumerate(LETTERS)}, []))
    letters.pre_tokenizer = ByteLevel(add_prefix_space=False)
    letters.decoder = ByteLevelDecoder()
    letters.add_special_tokens(["<end>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, eos_token="<end>")
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(LETTERS),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            intermediate_size=32,
            max_position_embeddings=64,
            tie_word_embeddings=True,
            eos_token_id=0,
            bos_token_id=None,
            pad_token_id=None,
        )
    )
    model.generation_config.eos_token_id = 0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def bandit_config(tiny_folder: Path, tmp_path: Path) -> TrainConfig:
    return build(
        TrainConfig,
        {
            "env": {"ids": ["tests.trainers.bandit:Bandit-v0"], "slots": 4},
            "policy": {"name": str(tiny_folder)},
            "generation": {"max_new_tokens": 3},
            "admission": {"rule": "oldest_first", "lookahead": 1},
            "weights": {"rule": "none"},
            "algorithm": {"learning_rate": 0.02},
            "schedule": {"updates": 6, "batch_size": 16, "checkpoint_every": 2, "evaluate": 8, "stall_seconds": 60},
            "run": str(tmp_path / "run"),
            "seed": 1,
        },
    )
