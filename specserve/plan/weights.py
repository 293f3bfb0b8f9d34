"""Bytes that weights take on one device: exact from tensor headers, estimated from a config."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod

from specserve.checkpoint.architecture import Dimensions
from specserve.checkpoint.draft_rules import expected_tensors
from specserve.checkpoint.dtype import DTYPE_BYTES
from specserve.checkpoint.rules import CheckedPair, Draft
from specserve.checkpoint.safetensors_header import TensorHeader
from specserve.checkpoint.tensors import Shape
from specserve.plan.execution import Device
from specserve.plan.holding import STORED_SCHEMES, Holding, holding_of
from specserve.plan.parameters import Matrices, Spread, matrices
from specserve.plan.values import DraftPlan, TargetPlan

_OFFSET_BYTES = 8  # d2t stays int64, whatever the activation type
# Types that only a checkpoint which is stored quantized has.
_FEW_BITS = ("F8_E4M3", "F8_E5M2")
_COPIED = ("norm", "q_a_proj", "kv_a_proj_with_mqa", "mlp.gate", "fc", "e_score_correction_bias")
_KV_HEADS = ("k_proj", "v_proj")


def target_weight_bytes(
    pair: CheckedPair, plan: TargetPlan, tensor_parallel: int, device: Device
) -> int:
    """Bytes of the target's weights on each device."""
    holding, size = holding_of(plan, device), pair.size
    tensors = pair.target.tensors
    if tensors is None:
        return estimate(size, holding, tensor_parallel)
    return stored_weight_bytes(tensors, holding, size, tensor_parallel)


def stored_weight_bytes(
    tensors: Mapping[str, TensorHeader], holding: Holding, size: Dimensions, tensor_parallel: int
) -> int:
    """Bytes on each device of a decoder whose tensors are known."""
    if holding.scheme in STORED_SCHEMES or any(one.dtype in _FEW_BITS for one in tensors.values()):
        held = {name: one.num_bytes for name, one in tensors.items()}
    else:
        shapes = {name: _held_shape(name, one.shape, size) for name, one in tensors.items()}
        held = _held(shapes, holding, _is_layer_matrix)
    if size.tie_word_embeddings:
        held.pop("lm_head.weight", None)
    return _on_each_device(held, size.num_kv_heads, tensor_parallel)


def draft_weight_bytes(
    pair: CheckedPair, draft: Draft, plan: DraftPlan, tensor_parallel: int, device: Device
) -> int:
    """Bytes of the draft's own weights on each device; what it borrows is the target's."""
    shapes = _draft_shapes(pair, draft, plan)
    offsets = prod(shapes.pop("d2t", (0,))) * _OFFSET_BYTES
    held = _held(shapes, holding_of(plan, device), _is_draft_matrix)
    return _on_each_device(held, draft.shape.size.num_kv_heads, tensor_parallel) + offsets


def estimate(size: Dimensions, holding: Holding, tensor_parallel: int = 1) -> int:
    """Bytes on each device of a decoder of which only the config is known.

    A mixture of experts that is stored in 4 bits has only its routed experts in 4 bits: that is
    how such checkpoints are made.
    """
    experts_only = size.moe is not None and holding.scheme == "compressed_tensors_int4"
    plain = replace(holding, scheme="none")

    def held(one: Matrices) -> int:
        is_plain = one.part in ("embedding", "lm_head", "routers", "norms")
        is_plain |= experts_only and one.part != "routed_experts"
        each = (plain if is_plain else holding).matrix_bytes(
            one.num_rows * one.num_columns, one.num_rows
        )
        return _share(one.count * each, one.spread, size.num_kv_heads, tensor_parallel)

    return sum(held(one) for one in matrices(size))


def _on_each_device(held: Mapping[str, int], num_kv_heads: int, shards: int) -> int:
    return sum(_share(size, _spread(name), num_kv_heads, shards) for name, size in held.items())


def _share(num_bytes: int, spread: Spread, num_kv_heads: int, shards: int) -> int:
    """What one of `shards` devices holds; a head that cannot be divided is there in copies."""
    if spread == "copied":
        return num_bytes
    if spread == "kv_heads":
        return num_bytes * -(-num_kv_heads // shards) // num_kv_heads
    return -(-num_bytes // shards)


def _spread(name: str) -> Spread:
    """By the published name, without its last part (weight, weight_scale, bias …)."""
    owner = name.rpartition(".")[0] or name
    if owner.endswith(_COPIED) or name.endswith(_COPIED):
        return "copied"
    return "kv_heads" if owner.endswith(_KV_HEADS) else "shared_out"


def _draft_shapes(pair: CheckedPair, draft: Draft, plan: DraftPlan) -> dict[str, Shape]:
    if draft.facts.tensors is not None:
        stored = {name: header.shape for name, header in draft.facts.tensors.items()}
    else:
        expected = expected_tensors(draft.facts, draft.shape, pair.size)
        stored = {**expected.optional, **expected.required}
    left_out = {"t2d", *(f"{name}.weight" for name in plan.borrowed)}
    return {name: shape for name, shape in stored.items() if name not in left_out}


def _held(
    shapes: Mapping[str, Shape], holding: Holding, is_matrix: Callable[[str], bool]
) -> dict[str, int]:
    """Bytes of each tensor; those that are no matrices stay in the activation type."""
    dtype_bytes = DTYPE_BYTES[holding.dtype]
    return {
        name: holding.matrix_bytes(prod(shape), shape[0])
        if is_matrix(name)
        else prod(shape) * dtype_bytes
        for name, shape in shapes.items()
    }


def _held_shape(name: str, shape: Shape, size: Dimensions) -> Shape:
    """engine=torch repeats the norm of queries and keys for each head, to apply both at once."""
    heads = {"q_norm.weight": size.num_heads, "k_norm.weight": size.num_kv_heads}
    number = next((n for suffix, n in heads.items() if name.endswith(suffix)), None)
    return shape if number is None else (number, *shape)


def _is_layer_matrix(name: str) -> bool:
    """Embedding and lm_head stay unquantized: every token goes through them exactly."""
    return name.endswith("_proj.weight")


def _is_draft_matrix(name: str) -> bool:
    return _is_layer_matrix(name) or name == "fc.weight"
