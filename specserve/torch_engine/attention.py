"""Attention over cached tokens: which of them a pass sees, and the product itself.

B rows, Q queries each, L slots looked at, H query heads, Hkv key/value heads, G = H / Hkv query
heads that share one, D head size.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.rope import rotate_, rotations

# The fused kernel reads a mask without copying it where its rows begin at multiples of this.
_MASK_ALIGNMENT = 16
# Up to so many queries, three matrix products beat the fused CPU kernel, which works head by head.
_FEW_QUERIES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Which cached tokens each query of one forward pass sees; made once, shared by all layers.

    `positions` [B, Q] int64 are the rotary positions; `slots` [B * Q] int64 is where each query's
    key and value are written, before anything is read. The first `kv_tokens` slots of each row are
    looked at: all of them by every query if `mask` is None, else those where mask [B, Q, L] is
    True. The rows are `first_row` to `first_row + num_rows - 1`.
    """

    first_row: int
    num_rows: int
    num_queries: int
    positions: Tensor
    slots: Tensor
    kv_tokens: int
    mask: Tensor | None


def chain_step(
    lengths: Tensor,
    *,
    first_row: int,
    num_queries: int,
    row_tokens: int,
    kv_tokens: int,
    positions: Tensor | None = None,
    see_all: bool = False,
) -> Step:
    """Query j of row b is token number lengths[b] + j: it sees itself and everything before.

    `lengths` [B] counts the cached tokens, at most `kv_tokens - num_queries`. `positions` [B, Q]
    differ from the token numbers where a draft has skipped some. `see_all` promises that there is
    one query a row and that every row then holds exactly `kv_tokens`: no mask is needed.
    """
    device = lengths.device
    places = lengths[:, None] + torch.arange(num_queries, device=device)
    rows = torch.arange(first_row, first_row + lengths.shape[0], device=device)
    mask = None
    if not see_all:
        mask = torch.arange(kv_tokens, device=device) <= places[..., None]
    return Step(
        first_row=first_row,
        num_rows=lengths.shape[0],
        num_queries=num_queries,
        positions=places if positions is None else positions,
        slots=(places + rows[:, None] * row_tokens).flatten(),
        kv_tokens=kv_tokens,
        mask=mask,
    )


class CachedAttention:
    """The attention of one forward pass: what its Step says, made ready once for all layers."""

    def __init__(self, step: Step, cache: KVCache, frequency: Tensor, num_heads: int) -> None:
        num_kv_heads, head_dim = cache.num_kv_heads, cache.head_dim
        group = num_heads // num_kv_heads
        self._cache = cache
        self._num_heads = num_heads
        self._num_kv_heads = num_kv_heads
        self._num_queries = step.num_queries
        self._group = (group, head_dim)
        self._rotation = rotations(step.positions, frequency)
        self._index = cache.vector_index(step.slots, step.first_row, step.num_rows)
        way = _products if _few_in_float(step, cache) else _fused
        self._mix = way(step, cache, group)
        self.heads_shape = (
            step.num_rows,
            step.num_queries,
            num_heads + 2 * num_kv_heads,
            head_dim,
        )

    def attend(self, layer: int, heads: Tensor) -> Tensor:
        """Rotate and store what is new, then attend to what is seen.

        `heads` [B, Q, H + 2 Hkv, D], of `heads_shape`, holds queries, keys and values, and is
        changed. Returns [B, Q, H * D].
        """
        num_heads, num_kv_heads = self._num_heads, self._num_kv_heads
        rotate_(heads.narrow(2, 0, num_heads + num_kv_heads), self._rotation)
        self._cache.write(layer, self._index, heads.narrow(2, num_heads, 2 * num_kv_heads))
        return self._ungrouped(self._mix(layer, self._grouped(heads.narrow(2, 0, num_heads))))

    def _grouped(self, queries: Tensor) -> Tensor:
        """[B, Q, H, D] -> [B, Hkv, Q * G, D]: heads that share keys become further queries."""
        num_rows, num_queries = queries.shape[:2]
        if num_queries == 1:
            return queries.view(num_rows, self._num_kv_heads, *self._group)
        split = queries.view(num_rows, num_queries, self._num_kv_heads, *self._group)
        return split.transpose(1, 2).flatten(2, 3)

    def _ungrouped(self, mixed: Tensor) -> Tensor:
        """[B, Hkv, Q * G, D] -> [B, Q, H * D]."""
        num_rows, num_queries = mixed.shape[0], self._num_queries
        if num_queries == 1:
            return mixed.reshape(num_rows, 1, -1)
        split = mixed.view(num_rows, self._num_kv_heads, num_queries, *self._group)
        return split.transpose(1, 2).flatten(2)


# (layer, queries [B, Hkv, Q * G, D]) -> the values they see, weighted: the same shape.
_Mix = Callable[[int, Tensor], Tensor]


def _few_in_float(step: Step, cache: KVCache) -> bool:
    """Whether products are the faster way. In half precision they would round in between."""
    layer = cache.layers[0]
    in_float_on_cpu = layer.dtype is torch.float32 and layer.device.type == "cpu"
    return in_float_on_cpu and step.num_queries <= _FEW_QUERIES


def _products(step: Step, cache: KVCache, group: int) -> _Mix:
    """Scores, softmax and sum, each as one operation on all B * Hkv heads of keys."""
    all_keys, all_values = cache.read(step.first_row, step.num_rows, step.kv_tokens)
    keys = all_keys.flatten(1, 2).transpose(2, 3).unbind(0)
    values = all_values.flatten(1, 2).unbind(0)
    scale = cache.head_dim**-0.5
    if step.mask is None:
        # beta = 0: the values are not read, the shape only has to broadcast.
        beta, bias = 0, all_keys[0, :1, 0, :1, :1]
    else:
        per_query = _bias(step.mask, group, torch.float32)
        beta, bias = 1, per_query.expand(-1, cache.num_kv_heads, -1, -1).flatten(0, 1)

    def mix(layer: int, queries: Tensor) -> Tensor:
        batches = queries.flatten(0, 1)
        scores = torch.baddbmm(bias, batches, keys[layer], beta=beta, alpha=scale)
        return torch.bmm(scores.softmax(-1), values[layer]).view(queries.shape)

    return mix


def _fused(step: Step, cache: KVCache, group: int) -> _Mix:
    """Torch's own kernel for this device and dtype."""
    all_keys, all_values = cache.read(step.first_row, step.num_rows, step.kv_tokens)
    keys, values = all_keys.unbind(0), all_values.unbind(0)
    bias = None
    if step.mask is not None:
        padding = -step.kv_tokens % _MASK_ALIGNMENT
        padded = functional.pad(_bias(step.mask, group, all_keys.dtype), (0, padding))
        bias = padded[..., : step.kv_tokens]

    def mix(layer: int, queries: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(
            queries, keys[layer], values[layer], attn_mask=bias
        )

    return mix


def _bias(mask: Tensor, group: int, dtype: torch.dtype) -> Tensor:
    """What is added to the scores, [B, 1, Q * G, L]: 0 where mask [B, Q, L] is True.

    A finite stand-in for -inf: a padding query that sees nothing must not become NaN.
    """
    bias = torch.where(mask, 0.0, torch.finfo(dtype).min / 2).to(dtype)
    return bias[:, None, :, None].expand(-1, -1, -1, group, -1).flatten(2, 3)
