"""The tensors of a constructed pair, under their published names.

d hidden size, D head size, V vocabulary.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from specserve.testing.cycle_weights import (
    QUERY_SCALE,
    CycleWeights,
    PairShape,
    fast_rope_frequencies,
)
from specserve.testing.token_cycle import TokenCycle

NamedTensors = Iterator[tuple[str, Tensor]]


def target_tensors(weights: CycleWeights, generator: torch.Generator) -> NamedTensors:
    """The target under its published names, one tensor at a time.

    `o_proj` and `down_proj` are zero, so that the residual stream stays the embedding; what feeds
    them is random and computed all the same.
    """
    shape, cycle = weights.shape, weights.cycle
    hidden, query, kv, inner = _widths(shape)
    yield "model.embed_tokens.weight", embed_tokens(weights)
    for index in range(shape.num_layers):
        layer = f"model.layers.{index}"
        yield f"{layer}.input_layernorm.weight", torch.ones(hidden)
        yield f"{layer}.self_attn.q_proj.weight", _random(query, hidden, generator)
        yield f"{layer}.self_attn.k_proj.weight", _random(kv, hidden, generator)
        yield f"{layer}.self_attn.v_proj.weight", _random(kv, hidden, generator)
        yield f"{layer}.self_attn.o_proj.weight", torch.zeros(hidden, query)
        yield f"{layer}.post_attention_layernorm.weight", torch.ones(hidden)
        yield f"{layer}.mlp.gate_proj.weight", _random(inner, hidden, generator)
        yield f"{layer}.mlp.up_proj.weight", _random(inner, hidden, generator)
        yield f"{layer}.mlp.down_proj.weight", torch.zeros(hidden, inner)
    yield "model.norm.weight", torch.ones(hidden)
    head = torch.zeros(shape.vocab_size, hidden)
    head[cycle.first_id : cycle.first_id + cycle.size] = weights.target_head_Md.float()
    yield "lm_head.weight", head


def draft_tensors(weights: CycleWeights, generator: torch.Generator) -> NamedTensors:
    """The EAGLE-3 head under its published names; it borrows the target's embedding.

    `fc` averages its three equal inputs. Attention sees only its own position and adds the
    embedding of the input token minus the incoming residual: what leaves the layer is the
    embedding of the input token x, and the head proposes x + 1.
    """
    shape, cycle = weights.shape, weights.cycle
    hidden, _, _, inner = _widths(shape)
    yield "fc.weight", torch.cat([torch.eye(hidden) / 3] * 3, dim=1)
    for norm in ("input_layernorm", "hidden_norm", "post_attention_layernorm"):
        yield f"midlayer.{norm}.weight", torch.ones(hidden)
    yield "midlayer.self_attn.q_proj.weight", _self_score(weights, shape.num_heads)
    yield "midlayer.self_attn.k_proj.weight", _self_score(weights, shape.num_kv_heads)
    yield "midlayer.self_attn.v_proj.weight", _difference(weights)
    yield "midlayer.self_attn.o_proj.weight", _values_to_hidden(weights)
    yield "midlayer.mlp.gate_proj.weight", _random(inner, hidden, generator)
    yield "midlayer.mlp.up_proj.weight", _random(inner, hidden, generator)
    yield "midlayer.mlp.down_proj.weight", torch.zeros(hidden, inner)
    yield "norm.weight", torch.ones(hidden)
    draft_ids = proposable_ids(cycle, shape)
    on_cycle = (draft_ids >= cycle.first_id) & (draft_ids < cycle.first_id + cycle.size)
    head = torch.zeros(shape.draft_vocab_size, hidden)
    head[on_cycle] = weights.head_Md.float()
    yield "lm_head.weight", head
    yield "d2t", draft_ids - torch.arange(shape.draft_vocab_size)
    mask = torch.zeros(shape.vocab_size, dtype=torch.bool)
    mask[draft_ids] = True
    yield "t2d", mask


def proposable_ids(cycle: TokenCycle, shape: PairShape) -> Tensor:
    """Target ids of the draft vocabulary, ascending: the cycle, then others from id 0 on."""
    is_on_cycle = torch.zeros(shape.vocab_size, dtype=torch.bool)
    is_on_cycle[cycle.first_id : cycle.first_id + cycle.size] = True
    others = (~is_on_cycle).nonzero().flatten()[: shape.draft_vocab_size - cycle.size]
    return torch.cat((is_on_cycle.nonzero().flatten(), others)).sort().values


def embed_tokens(weights: CycleWeights) -> Tensor:
    """Every id as the cycle position it stands for, [V, d]."""
    positions = [weights.cycle.position(id_) for id_ in range(weights.shape.vocab_size)]
    return weights.embedding_Md.float()[torch.tensor(positions)]


def _self_score(weights: CycleWeights, num_heads: int) -> Tensor:
    """q or k projection [heads * D, 2d]: the constant, in the fast coordinates."""
    shape, constant = weights.shape, 2 * weights.num_frequencies
    num_fast = len(fast_rope_frequencies(shape.head_dim))
    # The first half of a head's coordinates are the first members of the rotated pairs.
    projection = torch.zeros(num_heads, shape.head_dim, 2 * shape.hidden_size)
    normed_constant = weights.num_frequencies**0.5 * weights.norm_factor
    projection[:, :num_fast, constant] = QUERY_SCALE / normed_constant
    return projection.flatten(0, 1)


def _difference(weights: CycleWeights) -> Tensor:
    """v projection [kv heads * D, 2d]: Fourier part of the token minus that of the residual."""
    shape, num_features = weights.shape, 2 * weights.num_frequencies
    projection = torch.zeros(shape.num_kv_heads * shape.head_dim, 2 * shape.hidden_size)
    features = torch.arange(num_features)
    projection[features, features] = 1 / weights.norm_factor
    projection[features, shape.hidden_size + features] = -1 / weights.norm_factor
    return projection


def _values_to_hidden(weights: CycleWeights) -> Tensor:
    """o projection [d, heads * D]: each value back to its feature, read from one query head."""
    shape, features = weights.shape, torch.arange(2 * weights.num_frequencies)
    num_groups = shape.num_heads // shape.num_kv_heads
    kv_head, coordinate = features // shape.head_dim, features % shape.head_dim
    projection = torch.zeros(shape.hidden_size, shape.num_heads * shape.head_dim)
    projection[features, kv_head * num_groups * shape.head_dim + coordinate] = 1.0
    return projection


def _widths(shape: PairShape) -> tuple[int, int, int, int]:
    query, kv = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    return shape.hidden_size, query, kv, shape.intermediate_size


def _random(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    scale: float = columns**-0.5
    return torch.randn(rows, columns, generator=generator) * scale
