"""Log-probabilities of responses under a causal LM, differentiable, with a shared prompt run only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from trainers.common.backbone import Backbone
from trainers.common.kv_cache import share

__all__ = ["TokenLogprobs", "response_logprobs"]

_CHUNK = 2**24
"""Logits alive at once where only some of their statistics are wanted (64 MiB in float32)."""


@dataclass(frozen=True)
class TokenLogprobs:
    """What a policy says about given responses. B rows, T the longest response; padding is on the right."""

    logprobs: Tensor
    """Log-probability of each response token, float32 [B, T]; 0 where ``mask`` is False."""
    entropy: Tensor
    """Entropy of the distribution each token was drawn from, nats, float32 [B, T]; 0 where ``mask`` is False."""
    mask: Tensor
    """True on response tokens, bool [B, T]."""
    full: Tensor | None = None
    """Log-probabilities of the whole vocabulary, float32 [B, T, V], when asked for."""
    hidden: Tensor | None = None
    """Last hidden state each token was predicted from [B, T, H], when asked for (input of a value head)."""
    candidates: Tensor | None = None
    """Log-probabilities of the candidates that were asked for, float32 [B, T, K]; 0 where ``mask`` is False."""


def response_logprobs(
    backbone: Backbone,
    prompt_ids: Sequence[Sequence[int]],
    response_ids: Sequence[Sequence[int]],
    *,
    temperature: float = 1.0,
    full: bool = False,
    hidden: bool = False,
    candidates: Tensor | None = None,
    shared: bool | None = None,
) -> TokenLogprobs:
    """Score responses given prompts.

    Rows with the same prompt are run with its keys and values computed once and expanded (with gradient); this gives
    the same numbers as running every row in full.

    Args:
        backbone: The model.
        prompt_ids: B prompts, at least one token each.
        response_ids: B responses.
        temperature: Logits are divided by it, as they were in sampling.
        full: Return the log-probabilities of the whole vocabulary too.
        hidden: Return the hidden states too.
        candidates: Token ids [B, T, K] whose log-probabilities are wanted too.
        shared: True or False forces the shared-prompt way on or off; None uses it where it applies.

    Raises:
        ValueError: The two lists differ in length, a prompt is empty, or the temperature is not positive.
    """
    if len(prompt_ids) != len(response_ids) or not prompt_ids:
        raise ValueError(f"Got {len(prompt_ids)} prompts and {len(response_ids)} responses; give one of each per row.")
    if any(len(prompt) == 0 for prompt in prompt_ids):
        raise ValueError("A prompt has no tokens; the first response token needs something to be predicted from.")
    if temperature <= 0:
        raise ValueError(f"temperature is {temperature}; it must be positive (greedy responses are scored at 1.0).")
    device = next(backbone.model.parameters()).device
    lengths = torch.tensor([len(r) for r in response_ids], device=device)
    longest = max(len(r) for r in response_ids)
    mask = torch.arange(longest, device=device) < lengths[:, None]
    if longest == 0:
        empty = torch.zeros(len(prompt_ids), 0, device=device)
        return TokenLogprobs(empty, empty, mask)
    ids = torch.zeros(len(response_ids), longest, dtype=torch.long, device=device)
    ids[mask] = torch.tensor([t for r in response_ids for t in r], dtype=torch.long, device=device)

    features = _features(backbone, prompt_ids, response_ids, longest, device, shared, hidden)
    others = None if candidates is None else candidates[mask]
    picked, entropy, whole, other = _statistics(backbone, features[mask], ids[mask], temperature, full, others)
    zeros = torch.zeros(mask.shape, dtype=torch.float32, device=device)

    def spread(packed: Tensor | None) -> Tensor | None:
        if packed is None:
            return None
        return torch.zeros(*mask.shape, packed.shape[-1], device=device).masked_scatter(mask[..., None], packed)

    return TokenLogprobs(
        logprobs=zeros.masked_scatter(mask, picked),
        entropy=zeros.masked_scatter(mask, entropy),
        mask=mask,
        full=spread(whole),
        hidden=backbone.hidden(features) if hidden else None,
        candidates=spread(other),
    )


def _features(
    backbone: Backbone,
    prompt_ids: Sequence[Sequence[int]],
    response_ids: Sequence[Sequence[int]],
    longest: int,
    device: torch.device,
    shared: bool | None,
    hidden: bool,
) -> Tensor:
    """Return the features that predict each response token, [B, T, F], in the order of the rows."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, prompt in enumerate(prompt_ids):
        groups.setdefault(tuple(prompt), []).append(row)
    # Checkpointing switches transformers' cache off.
    may_share = shared is not False and not _checkpoints_activations(backbone.model)
    parts: list[Tensor] = []
    order: list[int] = []
    alone: list[int] = []
    for prompt, rows in groups.items():
        part = None
        if may_share and (len(rows) > 1 or shared):
            part = _shared(backbone, prompt, [response_ids[row] for row in rows], device, hidden)
        if part is None:
            if shared:
                raise ValueError("This model's cache cannot be shared between rows; leave shared at None.")
            alone.extend(rows)
            continue
        parts.append(_pad(part, longest))
        order.extend(rows)
    if alone:
        prompts, responses = [prompt_ids[row] for row in alone], [response_ids[row] for row in alone]
        parts.append(_pad(_plain(backbone, prompts, responses, device, hidden), longest))
        order.extend(alone)
    features = parts[0] if len(parts) == 1 else torch.cat(parts)
    if order == list(range(len(order))):
        return features
    back = torch.empty(len(order), dtype=torch.long, device=device)
    back[torch.tensor(order, device=device)] = torch.arange(len(order), device=device)
    return features[back]


def _checkpoints_activations(model: Any) -> bool:
    name = (
        "is_activation_checkpointing" if hasattr(model, "is_activation_checkpointing") else "is_gradient_checkpointing"
    )
    return bool(getattr(model, name, False))


def _pad(features: Tensor, longest: int) -> Tensor:
    missing = longest - features.shape[1]
    return torch.nn.functional.pad(features, (0, 0, 0, missing)) if missing > 0 else features


def _right_padded(rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Pad with 0: causal attention never lets a real position see what is to its right."""
    longest = max(len(row) for row in rows)
    return torch.tensor([[*row, *([0] * (longest - len(row)))] for row in rows], dtype=torch.long, device=device)


def _shared(
    backbone: Backbone, prompt: Sequence[int], responses: Sequence[Sequence[int]], device: torch.device, hidden: bool
) -> Tensor | None:
    """Run the prompt once and the responses on its expanded cache; None where the cache cannot be shared."""
    head, cache = backbone.features(torch.tensor([prompt], device=device), use_cache=True, hidden=hidden)
    if not share(cache, len(responses)):
        return None
    first = head[:, -1:].expand(len(responses), -1, -1)
    inputs = _right_padded(responses, device)[:, :-1]
    if inputs.shape[1] == 0:
        return first
    rest, _ = backbone.features(inputs, cache=cache, hidden=hidden)
    return torch.cat([first, rest], dim=1)


def _plain(
    backbone: Backbone,
    prompts: Sequence[Sequence[int]],
    responses: Sequence[Sequence[int]],
    device: torch.device,
    hidden: bool,
) -> Tensor:
    """Run prompt and response of every row in one pass."""
    inputs = _right_padded([[*p, *r[:-1]] for p, r in zip(prompts, responses, strict=True)], device)
    features, _ = backbone.features(inputs, hidden=hidden)
    longest = max(len(r) for r in responses)
    starts = torch.tensor([len(p) - 1 for p in prompts], device=device)
    # Positions past a short row's end are padding of the response and masked by the caller.
    index = (starts[:, None] + torch.arange(longest, device=device)).clamp(max=features.shape[1] - 1)
    return features.gather(1, index[..., None].expand(-1, -1, features.shape[-1]))


def _statistics(
    backbone: Backbone, features: Tensor, ids: Tensor, temperature: float, full: bool, others: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Log-probability and entropy [N], distributions [N, V] if ``full``, those of ``others`` [N, K], of N positions."""

    def score(part: Tensor, part_ids: Tensor, part_others: Tensor | None) -> tuple[Tensor | None, ...]:
        whole = torch.log_softmax(backbone.logits(part) / temperature, dim=-1)
        picked = whole.gather(-1, part_ids[:, None]).squeeze(-1)
        entropy = -(whole.exp() * whole).sum(-1)
        return picked, entropy, whole if full else None, None if part_others is None else whole.gather(-1, part_others)

    vocabulary = int(getattr(backbone.model.config, "vocab_size", features.shape[-1]))  # type: ignore[arg-type,union-attr]
    rows = max(1, _CHUNK // vocabulary)
    if full or len(ids) <= rows:
        picked, entropy, whole, other = score(features, ids, others)
        assert picked is not None
        assert entropy is not None
        return picked, entropy, whole, other
    # Recomputed in backward, so that no chunk's logits outlive it: B x T x V floats do not fit for real vocabularies.
    cuts = [slice(at, at + rows) for at in range(0, len(ids), rows)]
    parts: list[Any] = [
        checkpoint(score, features[cut], ids[cut], None if others is None else others[cut], use_reentrant=False)
        for cut in cuts
    ]
    joined = [torch.cat([part[column] for part in parts]) for column in ((0, 1) if others is None else (0, 1, 3))]
    return joined[0], joined[1], None, None if others is None else joined[2]
