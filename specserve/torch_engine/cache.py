"""KV memory: one row a request, the same layout for target and draft."""

import torch
from torch import Tensor


class KVCache:
    """Keys and values of all layers. Slot `row * row_tokens + i` holds token i of a row.

    Each of `layers` is [2, num_rows, num_kv_heads, row_tokens, head_dim], keys first; a head's keys
    lie together, so that attention multiplies them without a copy. `vectors` are the same layers as
    [2 * num_rows * num_kv_heads * row_tokens, head_dim]. The last slot of a row is scratch: padding
    may be written there, and no query may see it.
    """

    def __init__(
        self,
        *,
        num_layers: int,
        num_rows: int,
        row_tokens: int,
        num_kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.num_rows = num_rows
        self.row_tokens = row_tokens
        self.num_kv_heads = num_kv_heads
        self.head_dim = head_dim
        # Zeros: a hidden slot has weight 0, and 0 times a stray NaN would still be NaN.
        self._storage = torch.zeros(
            (num_layers, 2, num_rows, num_kv_heads, row_tokens, head_dim),
            dtype=dtype,
            device=device,
        )
        self.layers = self._storage.unbind(0)
        self.vectors = self._storage.view(num_layers, -1, head_dim).unbind(0)
        # Slot of row r -> vector of (key or value, head): slot + r * _row_step + _head_steps.
        row_step = (num_kv_heads - 1) * row_tokens
        self._row_steps = torch.arange(num_rows, device=device) * row_step
        sides = torch.arange(2, device=device) * (num_rows * num_kv_heads * row_tokens)
        heads = torch.arange(num_kv_heads, device=device) * row_tokens
        self._head_steps = (sides[:, None] + heads).flatten()

    @property
    def num_bytes(self) -> int:
        """Bytes of all layers."""
        return self._storage.nbytes

    def vector_index(self, slots: Tensor, first_row: int, num_rows: int) -> Tensor:
        """Where slots [B * Q] of the B rows from `first_row` lie in a layer of `vectors`.

        For each slot its keys, head by head, then its values: [B * Q * 2 * Hkv].
        """
        row_steps = self._row_steps[first_row : first_row + num_rows, None]
        first_vectors = slots.view(num_rows, -1) + row_steps
        return (first_vectors[..., None] + self._head_steps).flatten()

    def read(self, first_row: int, num_rows: int, num_tokens: int) -> tuple[Tensor, Tensor]:
        """Views of the rows' first slots: keys and values, each [layers, B, Hkv, L, D]."""
        rows = self._storage[:, :, first_row : first_row + num_rows, :, :num_tokens]
        keys, values = rows.unbind(1)
        return keys, values

    def move_row(self, source: int, destination: int, num_tokens: int) -> None:
        """Copy a row's first `num_tokens` slots over another row's."""
        rows = self._storage
        rows[:, :, destination, :, :num_tokens] = rows[:, :, source, :, :num_tokens]

    def move_slots(self, source: Tensor, destination: Tensor) -> None:
        """Copy slots [N] to slots [N] in all layers. Everything is read before it is written."""
        rows, tokens = source // self.row_tokens, source % self.row_tokens
        new_rows, new_tokens = destination // self.row_tokens, destination % self.row_tokens
        self._storage[:, :, new_rows, :, new_tokens] = self._storage[:, :, rows, :, tokens]
