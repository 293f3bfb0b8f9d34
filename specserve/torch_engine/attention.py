"""Attention over cached tokens: which of them a pass sees, and the product itself.

B rows, Q queries each, L slots looked at, H query heads, Hkv key/value heads, G = H / Hkv query
heads that share one, D head size.
"""

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
        num_kv_heads = cache.num_kv_heads
        self._cache = cache
        self._num_heads = num_heads
        self._num_kv_heads = num_kv_heads
        self._group = (num_heads // num_kv_heads, cache.head_dim)
        self._num_queries = step.num_queries
        self._rotation = rotations(step.positions, frequency)
        self._index = cache.vector_index(step.slots, step.first_row, step.num_rows)
        self._keys, self._values = cache.read(step.first_row, step.num_rows, step.kv_tokens)
        self._scale = cache.head_dim**-0.5
        self._by_products = _prefers_products(step, cache)
        self._bias = None if step.mask is None else _bias(step.mask, self._group[0], cache)
        if self._by_products:
            self._make_batches(step.num_rows * num_kv_heads)
        self.heads_shape = (
            step.num_rows,
            step.num_queries,
            num_heads + 2 * num_kv_heads,
            cache.head_dim,
        )

    def attend(self, layer: int, heads: Tensor) -> Tensor:
        """Rotate and store what is new, then attend to what is seen.

        `heads` [B, Q, H + 2 Hkv, D], of `heads_shape`, holds queries, keys and values, and is
        changed. Returns [B, Q, H * D].
        """
        num_heads, num_kv_heads = self._num_heads, self._num_kv_heads
        rotate_(heads.narrow(2, 0, num_heads + num_kv_heads), self._rotation)
        self._cache.write(layer, self._index, heads.narrow(2, num_heads, 2 * num_kv_heads))
        queries = self._grouped(heads.narrow(2, 0, num_heads))
        if self._by_products:
            return self._ungrouped(self._products(layer, queries))
        mixed = functional.scaled_dot_product_attention(
            queries, self._keys[layer], self._values[layer], attn_mask=self._bias
        )
        return self._ungrouped(mixed)

    def _products(self, layer: int, queries: Tensor) -> Tensor:
        """Scores, softmax and weighted sum, each as one operation on [B * Hkv, Q * G, ...]."""
        scores = torch.baddbmm(
            self._scores_bias,
            queries.reshape(self._batch_shape),
            self._key_batches[layer],
            beta=self._beta,
            alpha=self._scale,
        )
        return torch.bmm(scores.softmax(-1), self._value_batches[layer]).view(queries.shape)

    def _make_batches(self, num_batches: int) -> None:
        """Views of keys, values and bias as `_products` multiplies them."""
        group, head_dim = self._group
        self._batch_shape = (num_batches, self._num_queries * group, head_dim)
        self._key_batches = [keys.flatten(0, 1).transpose(1, 2) for keys in self._keys]
        self._value_batches = [values.flatten(0, 1) for values in self._values]
        if self._bias is None:
            # beta = 0: the value is not read, the shape only has to broadcast.
            self._beta, self._scores_bias = 0, self._keys[0][:1, 0, :1, :1]
        else:
            bias = self._bias.expand(-1, self._num_kv_heads, -1, -1)
            self._beta, self._scores_bias = 1, bias.flatten(0, 1)

    def _grouped(self, queries: Tensor) -> Tensor:
        """[B, Q, H, D] -> [B, Hkv, Q * G, D], where G query heads share a key/value head."""
        split = queries.view(*queries.shape[:2], self._num_kv_heads, *self._group)
        return split.transpose(1, 2).flatten(2, 3)

    def _ungrouped(self, mixed: Tensor) -> Tensor:
        """[B, Hkv, Q * G, D] -> [B, Q, H * D]."""
        split = mixed.view(*mixed.shape[:2], self._num_queries, *self._group)
        return split.transpose(1, 2).flatten(2)


def _prefers_products(step: Step, cache: KVCache) -> bool:
    """Other dtypes than float32 would round the weights between the two products."""
    layer = cache.layers[0]
    in_float_on_cpu = layer.dtype is torch.float32 and layer.device.type == "cpu"
    return in_float_on_cpu and step.num_queries <= _FEW_QUERIES


def _bias(mask: Tensor, group: int, cache: KVCache) -> Tensor:
    """What is added to the scores, [B, 1, Q * G, L]: 0 where mask [B, Q, L] is True.

    A finite stand-in for -inf: a padding query that sees nothing must not become NaN.
    """
    num_rows, num_queries, num_tokens = mask.shape
    dtype = cache.layers[0].dtype
    aligned = -(-num_tokens // _MASK_ALIGNMENT) * _MASK_ALIGNMENT
    bias = torch.zeros((num_rows, num_queries, 1, aligned), dtype=dtype, device=mask.device)
    bias[..., :num_tokens].masked_fill_(~mask[:, :, None], torch.finfo(dtype).min / 2)
    bias = bias.expand(-1, -1, group, -1).reshape(num_rows, 1, num_queries * group, aligned)
    return bias[..., :num_tokens]
