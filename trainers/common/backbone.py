"""One way to run any Hugging Face causal LM: features and a cache first, float32 logits of chosen positions later."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["Backbone"]


class Backbone:
    """A causal LM split into a body that gives one feature vector per position and a head that gives logits.

    Splitting lets a caller pay for the vocabulary only where it needs logits. Models whose logits are more than
    ``head(hidden)`` (soft-capping, scaling) are noticed by comparing both ways once; their "features" are then the
    logits themselves.
    """

    def __init__(self, model: nn.Module) -> None:
        """Wrap ``model``; its weights are used in place, so later updates are seen.

        Args:
            model: A transformers causal LM, or a PEFT wrapper of one.
        """
        self.model = model
        # Typed Any: transformers' modules have these methods, ``nn.Module`` does not declare them.
        whole: Any = model
        self._body: Any = whole.get_decoder() if hasattr(whole, "get_decoder") else None
        self._head: Any = whole.get_output_embeddings() if hasattr(whole, "get_output_embeddings") else None
        self._cache_name: dict[int, str] = {}
        self._width = 0
        """Logits per position, known after the first features that are logits."""
        self.split = self._body is not None and self._head is not None and self._head_is_all()

    def features(
        self,
        input_ids: Tensor,
        *,
        cache: Any = None,
        use_cache: bool = False,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        hidden: bool = False,
    ) -> tuple[Tensor, Any]:
        """Run the body.

        Args:
            input_ids: Token ids [B, L].
            cache: Keys and values of earlier positions, extended in place.
            use_cache: Return a cache.
            attention_mask: 1 for real tokens [B, earlier + L]; None when there is no padding on the left.
            position_ids: Positions [B, L]; None counts on from the cache.
            hidden: Let the features hold the last hidden state, for :meth:`hidden`. Where they are logits, it is put
                in front of them.

        Returns:
            Features [B, L, F] and the cache (None unless asked for).
        """
        module = self._body if self.split else self.model
        arguments: dict[str, Any] = {"input_ids": input_ids, "use_cache": use_cache or cache is not None}
        name = self._cache_argument(module)
        if cache is not None:
            arguments[name] = cache
        if attention_mask is not None:
            arguments["attention_mask"] = attention_mask
        if position_ids is not None:
            arguments["position_ids"] = position_ids
        if hidden and not self.split:
            arguments["output_hidden_states"] = True
        output: Any = module(**arguments)
        grown = getattr(output, name, None) if arguments["use_cache"] else None
        if self.split:
            return output.last_hidden_state, grown
        self._width = output.logits.shape[-1]
        return torch.cat([output.hidden_states[-1], output.logits], -1) if hidden else output.logits, grown

    @property
    def hidden_size(self) -> int:
        """Width of the last hidden state."""
        weight = next(self.model.parameters())
        with torch.no_grad():
            features, _ = self.features(torch.zeros(1, 1, dtype=torch.long, device=weight.device), hidden=True)
            return int(self.hidden(features).shape[-1])

    def hidden(self, features: Tensor) -> Tensor:
        """Return the last hidden state [..., H] in ``features`` that were made with ``hidden=True``."""
        return features if self.split else features[..., : -self._width]

    def logits(self, features: Tensor) -> Tensor:
        """Return float32 logits [..., V] of ``features`` [..., F]."""
        out: Tensor = self._head(features) if self.split else features[..., -self._width :]
        return out.float()

    def _cache_argument(self, module: Any) -> str:
        """Return what ``forward`` calls its cache: transformers renamed ``past_key_values`` to ``cache`` in 5.2x."""
        found = self._cache_name.get(id(module))
        if found is None:
            inner = module.get_base_model() if hasattr(module, "get_base_model") else module
            forward: Callable[..., Any] = inspect.unwrap(inner.forward)
            found = "cache" if "cache" in inspect.signature(forward).parameters else "past_key_values"
            self._cache_name[id(module)] = found
        return found

    @torch.no_grad()
    def _head_is_all(self) -> bool:
        weight = next(self.model.parameters())
        ids = torch.arange(4, device=weight.device).unsqueeze(0)
        whole = self.model(input_ids=ids, use_cache=False).logits.float()
        parts = self._head(self._body(input_ids=ids, use_cache=False).last_hidden_state).float()
        tolerance = 1e-4 if weight.dtype == torch.float32 else 2e-2
        return whole.shape == parts.shape and bool(torch.allclose(whole, parts, atol=tolerance, rtol=tolerance))
