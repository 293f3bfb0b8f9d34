"""Attention over cached tokens: which of them a pass sees, and the product itself.

B rows, Q queries each, L slots looked at, H query heads, Hkv key/value heads, G = H / Hkv query
heads that share one, D head size.
"""

from collections.abc import Callable, Sequence
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedStep:
    """One forward pass over spans of several rows, one behind the other: tokens [1, sum of Q].

    Each part is the Step of one row. Only the attention tells them apart.
    """

    parts: tuple[Step, ...]


def pack(parts: Sequence[Step]) -> Step | PackedStep:
    """The parts, at least one, as one pass."""
    return parts[0] if len(parts) == 1 else PackedStep(parts=tuple(parts))


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


# (layer, queries, keys and values side by side [B, Q, (H + 2 Hkv) * D]) -> [B, Q, H * D].
Attend = Callable[[int, Tensor], Tensor]


def make_attention(
    step: Step | PackedStep, cache: KVCache, frequency: Tensor, num_heads: int
) -> Attend:
    """The attention of one forward pass: what its Step says, made ready once for all layers.

    The result rotates queries and keys (it changes its argument), stores what is new and attends
    to what is seen. `frequency` is the rotary embedding's.
    """
    if isinstance(step, PackedStep):
        return _make_packed(step, cache, frequency, num_heads)
    # Functions of local variables: on a CPU, a pass over a few tokens spends most of its time
    # between operations.
    prepare = _make_prepare(step, cache, frequency, num_heads)
    layer = cache.layers[0]
    # In half precision products would round in between.
    in_float_on_cpu = layer.dtype is torch.float32 and layer.is_cpu
    few = step.num_queries <= _FEW_QUERIES
    mix = (
        _make_products(step, cache, num_heads)
        if in_float_on_cpu and few
        else (_make_fused(step, cache, num_heads))
    )
    num_rows, num_queries, num_kv_heads = step.num_rows, step.num_queries, cache.num_kv_heads
    group = num_heads // num_kv_heads

    # Heads that share keys become further queries of one head.
    if num_queries == 1:

        def attend(layer: int, projected: Tensor) -> Tensor:
            queries = prepare(layer, projected).reshape(num_rows * num_kv_heads, group, -1)
            return mix(layer, queries).reshape(num_rows, 1, -1)

    else:

        def attend(layer: int, projected: Tensor) -> Tensor:
            queries = prepare(layer, projected).view(num_rows, num_queries, num_kv_heads, group, -1)
            batches = queries.transpose(1, 2).reshape(
                num_rows * num_kv_heads, num_queries * group, -1
            )
            mixed = mix(layer, batches).reshape(num_rows, num_kv_heads, num_queries, group, -1)
            return mixed.transpose(1, 2).reshape(num_rows, num_queries, -1)

    return attend


def _make_packed(step: PackedStep, cache: KVCache, frequency: Tensor, num_heads: int) -> Attend:
    sizes = [part.num_queries for part in step.parts]
    attends = [make_attention(part, cache, frequency, num_heads) for part in step.parts]

    def attend(layer: int, projected: Tensor) -> Tensor:
        spans = projected.split(sizes, dim=1)  # type: ignore[no-untyped-call]
        mixed = [one(layer, span) for one, span in zip(attends, spans, strict=True)]
        return torch.cat(mixed, dim=1)

    return attend


def _make_prepare(step: Step, cache: KVCache, frequency: Tensor, num_heads: int) -> Attend:
    """Rotates queries and keys, stores keys and values, returns the queries [B * Q, H, D]."""
    num_kv_heads, head_dim, vectors = cache.num_kv_heads, cache.head_dim, cache.vectors
    num_rotated, num_stored = num_heads + num_kv_heads, 2 * num_kv_heads
    index = cache.vector_index(step.slots, step.first_row, step.num_rows)
    rotation = rotations(step.positions.flatten(), frequency)

    def prepare(layer: int, projected: Tensor) -> Tensor:
        heads = projected.view(-1, num_heads + num_stored, head_dim)
        rotate_(heads.narrow(1, 0, num_rotated), rotation)
        new = heads.narrow(1, num_heads, num_stored)
        vectors[layer].index_copy_(0, index, new.reshape(-1, head_dim))
        return heads.narrow(1, 0, num_heads)

    return prepare


def _make_products(step: Step, cache: KVCache, num_heads: int) -> Attend:
    """Scores, softmax and sum, each as one operation: [B * Hkv, Q * G, D] -> the same."""
    all_keys, all_values = cache.read(step.first_row, step.num_rows, step.kv_tokens)
    keys = all_keys.flatten(1, 2).transpose(2, 3).unbind(0)
    values = all_values.flatten(1, 2).unbind(0)
    scale = cache.head_dim**-0.5
    if step.mask is None:
        # beta = 0: the values are not read, the shape only has to broadcast.
        beta, bias = 0, all_keys[0, :1, 0, :1, :1]
    else:
        per_query = _bias(step.mask, num_heads // cache.num_kv_heads, torch.float32)
        beta, bias = 1, per_query.expand(-1, cache.num_kv_heads, -1, -1).flatten(0, 1)

    def mix(layer: int, queries: Tensor) -> Tensor:
        scores = torch.baddbmm(bias, queries, keys[layer], beta=beta, alpha=scale)
        return torch.bmm(scores.softmax(-1), values[layer])

    return mix


def _make_fused(step: Step, cache: KVCache, num_heads: int) -> Attend:
    """Torch's own kernel for this device and dtype: [B * Hkv, Q * G, D] -> the same."""
    all_keys, all_values = cache.read(step.first_row, step.num_rows, step.kv_tokens)
    keys, values = all_keys.unbind(0), all_values.unbind(0)
    shape = (step.num_rows, cache.num_kv_heads, -1, cache.head_dim)
    bias = None
    if step.mask is not None:
        per_query = _bias(step.mask, num_heads // cache.num_kv_heads, all_keys.dtype)
        padding = -step.kv_tokens % _MASK_ALIGNMENT
        bias = functional.pad(per_query, (0, padding))[..., : step.kv_tokens]

    def mix(layer: int, queries: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(
            queries.view(shape), keys[layer], values[layer], attn_mask=bias
        )

    return mix


def _bias(mask: Tensor, group: int, dtype: torch.dtype) -> Tensor:
    """What is added to the scores, [B, 1, Q * G, L]: 0 where mask [B, Q, L] is True.

    A finite stand-in for -inf: a padding query that sees nothing must not become NaN.
    """
    bias = torch.where(mask, 0.0, torch.finfo(dtype).min / 2).to(dtype)
    return bias[:, None, :, None].expand(-1, -1, -1, group, -1).flatten(2, 3)
