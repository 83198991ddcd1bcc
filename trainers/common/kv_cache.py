"""Key/value caches that are shared between rows with one prompt, and that shrink as rows finish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicLayer

__all__ = ["DecodingCache", "share"]


def _is_plain(cache: Any) -> bool:
    """True when every layer just concatenates keys and values (no sliding window, no recurrent state)."""
    return all(type(layer) is DynamicLayer and layer.is_initialized for layer in getattr(cache, "layers", [None]))


def share(cache: Any, rows: int) -> bool:
    """Let ``rows`` rows use the cache of one, without a copy and with its gradient.

    Returns:
        False, with the cache untouched, when its kind cannot be shared this way.
    """
    if not _is_plain(cache):
        return False
    for layer in cache.layers:
        layer.keys = layer.keys.expand(rows, -1, -1, -1)
        layer.values = layer.values.expand(rows, -1, -1, -1)
    return True


class _BufferedLayer(DynamicLayer):  # type: ignore[misc]
    """Writes into a buffer made once: concatenating at every token copies the whole cache every time."""

    def __init__(self, keys: Tensor, values: Tensor, rows: Tensor, capacity: int) -> None:
        """Copy the chosen rows of ``keys`` and ``values`` [U, heads, P, width] and leave room for ``capacity``."""
        super().__init__()
        self.device, self.dtype, self.is_initialized = keys.device, keys.dtype, True
        self._length, self._rows = keys.shape[-2], len(rows)
        self._buffers = tuple(
            x.new_empty(len(rows), x.shape[1], self._length + capacity, x.shape[3]) for x in (keys, values)
        )
        for buffer, x in zip(self._buffers, (keys, values), strict=True):
            buffer[:, :, : self._length] = x[rows]
        self._view()

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append positions in place and return views of everything so far."""
        end = self._length + key_states.shape[-2]
        for buffer, x in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[: self._rows, :, self._length : end] = x
        self._length = end
        self._view()
        return self.keys, self.values

    def move(self, target: Tensor, origin: Tensor, rows: int) -> None:
        """Copy rows ``origin`` over rows ``target`` and keep the first ``rows``."""
        for buffer in self._buffers:
            buffer[target, :, : self._length] = buffer[origin, :, : self._length]
        self._rows = rows
        self._view()

    def _view(self) -> None:
        self.keys, self.values = (buffer[: self._rows, :, : self._length] for buffer in self._buffers)


class DecodingCache:
    """The cache of a batch in decoding. Rows may leave; the last ones then move into their places.

    Plain caches become buffers, where a leaving row costs the copy of one row; every other kind is reordered by
    its own method.
    """

    def __init__(self, cache: Any, rows: Sequence[int], capacity: int) -> None:
        """Spread a prefilled cache over the rows of a batch.

        Args:
            cache: What the body returned for the distinct prompts.
            rows: For each row of the batch, the index of its prompt in ``cache``.
            capacity: Further positions that will be written.
        """
        self.inner = cache
        self._buffered = _is_plain(cache)
        index = torch.tensor(rows, device=cache.layers[0].keys.device if self._buffered else None)
        if self._buffered:
            cache.layers = [_BufferedLayer(layer.keys, layer.values, index, capacity) for layer in cache.layers]
        else:
            cache.reorder_cache(index)

    @staticmethod
    def fill_order(kept: Sequence[int]) -> list[int]:
        """Return ``kept`` slots in the order they have after the holes were filled from the back."""
        count = len(kept)
        stay = [slot for slot in kept if slot < count]
        movers = [slot for slot in kept if slot >= count]
        holes = sorted(set(range(count)) - set(stay))
        order = list(range(count))
        for hole, mover in zip(holes, movers, strict=True):
            order[hole] = mover
        return order

    def keep(self, order: Sequence[int]) -> None:
        """Keep only the rows in ``order`` (from :meth:`fill_order`), in that order."""
        if not self._buffered:
            self.inner.reorder_cache(torch.tensor(order))
            return
        moved = [(hole, mover) for hole, mover in enumerate(order) if hole != mover]
        device = self.inner.layers[0].keys.device
        target = torch.tensor([hole for hole, _ in moved], dtype=torch.long, device=device)
        origin = torch.tensor([mover for _, mover in moved], dtype=torch.long, device=device)
        for layer in self.inner.layers:
            layer.move(target, origin, len(order))
