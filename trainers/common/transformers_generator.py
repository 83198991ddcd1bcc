"""Sampling with transformers: batched, cached, seeded, with the exact behaviour log-probabilities."""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from trainers.common.backbone import Backbone
from trainers.common.candidates import Candidates
from trainers.common.config import GenerationConfig
from trainers.common.kv_cache import DecodingCache
from trainers.common.policy import Policy
from trainers.common.sample import Generation

__all__ = ["TransformersGenerator", "truncate"]


@dataclass
class _Row:
    """A response in the making."""

    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finished: bool = False
    candidates: Candidates | None = None


class TransformersGenerator:
    """Samples from its own copy of a policy's weights; implements :class:`trainers.common.generator.Generator`.

    Each distinct prompt is run once, its cache is spread over its rows, and a row leaves the batch with its last
    token. ``generate`` and ``sync`` may be called from different threads: weights that arrive during a generation are
    set aside and taken over before the next one, so all tokens of a response come from one version.

    Args:
        policy: Where the weights come from, at construction and at each :meth:`sync`.
        batch_size: Most rows decoded together; more prompts are worked off in turn.
        record: Candidates recorded with each token, the likeliest first; 0 records none, -1 the whole vocabulary.
        top_k: Draw from the most likely tokens only; 0 draws from all.
        top_p: Then draw from the smallest set of these that holds this share of their probability.
        share: Use the policy's weights themselves instead of a copy; only for a policy that never changes.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        batch_size: int = 128,
        record: int = 0,
        top_k: int = 0,
        top_p: float = 1.0,
        share: bool = False,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}; it must be at least 1.")
        self.policy = policy
        self.batch_size = batch_size
        self.sampling = GenerationConfig(record=record, top_k=top_k, top_p=top_p)
        self.version = 0
        self._model: Any = (policy.model if share else copy.deepcopy(policy.model)).requires_grad_(False).eval()
        self._backbone = Backbone(self._model)
        self._busy = threading.Lock()
        self._handover = threading.Lock()
        self._waiting: tuple[dict[str, Tensor], int] | None = None

    def sync(self, version: int) -> None:
        """Take over the policy's parameters; generations that start later are stamped ``version``."""
        weights = {name: tensor.detach() for name, tensor in self.policy.model.state_dict().items()}
        with self._handover:
            if self._busy.acquire(blocking=False):
                try:
                    self._waiting = None
                    self._take(weights, version)
                finally:
                    self._busy.release()
            else:
                self._waiting = ({name: tensor.clone() for name, tensor in weights.items()}, version)

    def generate(
        self, prompts: Sequence[str], *, temperature: float, max_new_tokens: int, seed: int
    ) -> list[Generation]:
        """Sample one response for each prompt; see the contract.

        Raises:
            ValueError: ``temperature`` is negative, ``max_new_tokens`` is below 1, or a prompt leaves no room for
                ``max_new_tokens`` in the model's context.
        """
        if temperature < 0:
            raise ValueError(f"temperature is {temperature}; it must be 0 (greedy) or positive.")
        if max_new_tokens < 1:
            raise ValueError(f"max_new_tokens is {max_new_tokens}; it must be at least 1.")
        encoded = {text: self.policy.encode_prompt(text) for text in dict.fromkeys(prompts)}
        longest = max((len(ids) for ids in encoded.values()), default=0)
        if longest + max_new_tokens > self.policy.context_length:
            raise ValueError(
                f"A prompt of {longest} tokens and {max_new_tokens} new ones exceed the model's context of "
                f"{self.policy.context_length}; lower token_budget or max_new_tokens."
            )
        # One stream of numbers per row, drawn before anything runs: a row's draws do not depend on when others end.
        source = torch.Generator().manual_seed(seed)
        uniform = torch.rand(len(prompts), max_new_tokens, dtype=torch.float64, generator=source)
        with self._busy, torch.inference_mode():
            with self._handover:
                if self._waiting is not None:
                    self._take(*self._waiting)
                    self._waiting = None
                version = self.version
            rows: list[_Row] = []
            for start in range(0, len(prompts), self.batch_size):
                batch = [encoded[text] for text in prompts[start : start + self.batch_size]]
                rows += self._decode(batch, uniform[start : start + self.batch_size], temperature, max_new_tokens)
        return [
            Generation(
                prompt=text,
                text=self.policy.decode(row.ids),
                prompt_ids=tuple(encoded[text]),
                response_ids=tuple(row.ids),
                logprobs=tuple(row.logprobs),
                versions=(version,) * len(row.ids),
                temperature=temperature,
                finished=row.finished,
                candidates=row.candidates,
            )
            for text, row in zip(prompts, rows, strict=True)
        ]

    def _take(self, weights: dict[str, Tensor], version: int) -> None:
        with torch.no_grad():
            own = self._model.state_dict()
            for name, tensor in own.items():
                tensor.copy_(weights[name])
        self.version = version

    def _decode(self, prompts: Sequence[list[int]], uniform: Tensor, temperature: float, limit: int) -> list[_Row]:
        device = next(self._model.parameters()).device
        distinct = list(dict.fromkeys(map(tuple, prompts)))
        place = {prompt: index for index, prompt in enumerate(distinct)}
        logits, inner, mask = self._prefill(distinct, device)
        origin = [place[tuple(prompt)] for prompt in prompts]
        cache = DecodingCache(inner, origin, limit)
        index = torch.tensor(origin, device=device)
        logits = logits[index]
        mask = None if mask is None else mask[index]
        uniform = uniform.to(device)
        rows = [_Row() for _ in prompts]
        slots = list(range(len(prompts)))
        record = _Record(self.sampling, len(prompts), limit, logits) if self.sampling.record else None
        for step in range(limit):
            whole = torch.log_softmax(logits / (temperature or 1.0), dim=-1)
            if self.sampling.truncated:
                whole = truncate(whole, self.sampling.top_k, self.sampling.top_p)
            if record is not None:
                record.write(slots, step, whole)
            tokens, logprobs = _sample(whole, uniform[:, step], greedy=temperature == 0)
            picked, scores = tokens.tolist(), logprobs.tolist()
            kept: list[int] = []
            for slot, row_index in enumerate(slots):
                row = rows[row_index]
                row.ids.append(picked[slot])
                row.logprobs.append(scores[slot])
                row.finished = picked[slot] in self.policy.stop_ids
                if not row.finished:
                    kept.append(slot)
            if not kept or step + 1 == limit:
                break
            if len(kept) < len(slots):
                order = DecodingCache.fill_order(kept)
                cache.keep(order)
                slots = [slots[slot] for slot in order]
                chosen = torch.tensor(order, device=device)
                tokens, uniform = tokens[chosen], uniform[chosen]
                mask = None if mask is None else mask[chosen]
            positions = None
            if mask is not None:
                mask = torch.cat([mask, mask.new_ones(len(slots), 1)], dim=1)
                positions = mask.sum(1, keepdim=True) - 1
            features, _ = self._backbone.features(
                tokens[:, None], cache=cache.inner, attention_mask=mask, position_ids=positions
            )
            logits = self._backbone.logits(features[:, -1])
        if record is not None:
            for place_in_batch, row in enumerate(rows):
                row.candidates = record.read(place_in_batch, len(row.ids))
        return rows

    def _prefill(self, prompts: Sequence[tuple[int, ...]], device: torch.device) -> tuple[Tensor, Any, Tensor | None]:
        """Run the distinct prompts, padded on the left where their lengths differ.

        Returns:
            Logits of the next token [U, V], the cache, and the attention mask [U, P] (None without padding).
        """
        longest = max(map(len, prompts))
        ids = torch.tensor([[0] * (longest - len(p)) + list(p) for p in prompts], device=device)
        mask = positions = None
        if any(len(p) < longest for p in prompts):
            lengths = torch.tensor([len(p) for p in prompts], device=device)
            mask = (torch.arange(longest, device=device) >= longest - lengths[:, None]).long()
            positions = (mask.cumsum(1) - 1).clamp(min=0)
        features, cache = self._backbone.features(ids, use_cache=True, attention_mask=mask, position_ids=positions)
        return self._backbone.logits(features[:, -1]), cache, mask


class _Record:
    """The candidates of a batch in decoding: one buffer, written in place at every step."""

    def __init__(self, sampling: GenerationConfig, rows: int, limit: int, logits: Tensor) -> None:
        vocabulary = logits.shape[-1]
        self.truncated = sampling.truncated
        self.width = vocabulary if sampling.record == -1 else min(sampling.record, vocabulary)
        self.logprobs = torch.empty(rows, limit, self.width, device=logits.device)
        self.ids = None
        if sampling.record != -1:
            self.ids = torch.empty(rows, limit, self.width, dtype=torch.int32, device=logits.device)

    def write(self, rows: list[int], step: int, whole: Tensor) -> None:
        """Keep the candidates of one step; ``whole`` [N, V] are the log-probabilities of the given rows."""
        place = torch.tensor(rows, device=whole.device)
        if self.ids is None:
            self.logprobs[place, step] = whole
            return
        top = whole.topk(self.width, dim=-1)
        self.logprobs[place, step] = top.values
        self.ids[place, step] = top.indices.int()

    def read(self, row: int, length: int) -> Candidates:
        """Return one row's candidates, on the CPU."""
        ids = None if self.ids is None else self.ids[row, :length].cpu().clone()
        return Candidates(ids, self.logprobs[row, :length].cpu().clone(), self.truncated)


def truncate(logprobs: Tensor, top_k: int, top_p: float) -> Tensor:
    """Renormalise over the ``top_k`` likeliest tokens (0: all), then over the least of them that hold ``top_p``.

    Args:
        logprobs: [N, V].
        top_k: Tokens kept at most.
        top_p: Probability kept at least.

    Returns:
        [N, V] log-probabilities; minus infinity where nothing can be drawn.
    """
    ranked, order = logprobs.sort(dim=-1, descending=True, stable=True)
    if top_k:
        ranked[:, top_k:] = -torch.inf
    ranked = ranked.log_softmax(-1)
    if top_p < 1:
        probabilities = ranked.double().exp()
        # A token stays while those before it hold less than top_p, so the first one always does.
        ranked = ranked.masked_fill(probabilities.cumsum(-1) - probabilities >= top_p, -torch.inf).log_softmax(-1)
    return torch.empty_like(logprobs).scatter(-1, order, ranked)


def _sample(logprobs: Tensor, uniform: Tensor, *, greedy: bool) -> tuple[Tensor, Tensor]:
    """Draw a token per row from float32 ``logprobs`` [N, V] by inverting the distribution at ``uniform`` [N].

    Returns:
        Token ids [N] and their log-probabilities [N].
    """
    if greedy:
        tokens = logprobs.argmax(-1)
    else:
        # float64: in float32 the tail of a large vocabulary's cumulative sum is lost.
        cumulative = logprobs.double().exp().cumsum(-1)
        target = uniform[:, None] * cumulative[:, -1:]
        tokens = torch.searchsorted(cumulative, target, right=True).squeeze(-1).clamp(max=logprobs.shape[-1] - 1)
    return tokens, logprobs.gather(-1, tokens[:, None]).squeeze(-1)
