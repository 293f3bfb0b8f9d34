"""Bytes that weights take on one device: exact from tensor headers, estimated from a config."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod

from specserve.checkpoint.architecture import Dimensions
from specserve.checkpoint.draft_rules import expected_tensors
from specserve.checkpoint.dtype import DTYPE_BYTES, ActivationDtype
from specserve.checkpoint.rules import CheckedPair, Draft
from specserve.checkpoint.tensors import Shape
from specserve.plan.values import DraftPlan, TargetPlan

_INT8_ROW_BYTES = 4 + 1
_OFFSET_BYTES = 8  # d2t stays int64, whatever the activation type


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """How matrices are held: plain in `dtype`, or in 8 or 4 bits with scales of that type."""

    dtype: ActivationDtype
    scheme: str
    group_size: int | None

    def matrix_bytes(self, numel: int, num_rows: int) -> int:
        """Bytes of a matrix that the scheme applies to.

        int8 has a float32 scale and an int8 zero point for each row, int4 a scale and a zero
        point for each group; stored checkpoints in 4 bits are symmetric, with a scale only.
        """
        dtype_bytes = DTYPE_BYTES[self.dtype]
        if self.scheme == "none":
            return numel * dtype_bytes
        if self.scheme == "int8":
            return numel + num_rows * _INT8_ROW_BYTES
        per_group = 1 if self.scheme == "compressed_tensors_int4" else 2
        return numel // 2 + numel // (self.group_size or numel) * per_group * dtype_bytes


def target_weight_bytes(pair: CheckedPair, plan: TargetPlan, tensor_parallel: int) -> int:
    """Bytes of the target's weights on each device."""
    holding = Holding(
        dtype=plan.dtype, scheme=plan.quantization, group_size=plan.quantization_group_size
    )
    if pair.target.tensors is None:
        return -(-estimate(pair.size, holding) // tensor_parallel)
    if plan.quantization == "compressed_tensors_int4":
        return -(-(pair.target.weight_bytes or 0) // tensor_parallel)
    shapes = {
        name: _held_shape(name, header.shape, pair.size)
        for name, header in pair.target.tensors.items()
    }
    if pair.size.tie_word_embeddings:
        shapes.pop("lm_head.weight", None)
    return -(-_bytes(shapes, holding, _is_layer_matrix) // tensor_parallel)


def draft_weight_bytes(
    pair: CheckedPair, draft: Draft, plan: DraftPlan, tensor_parallel: int
) -> int:
    """Bytes of the draft's own weights on each device; what it borrows is the target's."""
    holding = Holding(
        dtype=plan.dtype, scheme=plan.quantization, group_size=plan.quantization_group_size
    )
    shapes = _draft_shapes(pair, draft, plan)
    offsets = prod(shapes.pop("d2t", (0,))) * _OFFSET_BYTES
    matrices = _bytes(shapes, holding, _is_draft_matrix)
    return -(-matrices // tensor_parallel) + offsets


def _draft_shapes(pair: CheckedPair, draft: Draft, plan: DraftPlan) -> dict[str, Shape]:
    if draft.facts.tensors is not None:
        stored = {name: header.shape for name, header in draft.facts.tensors.items()}
    else:
        expected = expected_tensors(draft.facts, draft.shape, pair.size)
        stored = {**expected.optional, **expected.required}
    left_out = {"t2d", *(f"{name}.weight" for name in plan.borrowed)}
    return {name: shape for name, shape in stored.items() if name not in left_out}


def _bytes(shapes: Mapping[str, Shape], holding: Holding, is_matrix: Callable[[str], bool]) -> int:
    dtype_bytes = DTYPE_BYTES[holding.dtype]
    return sum(
        holding.matrix_bytes(prod(shape), shape[0])
        if is_matrix(name)
        else prod(shape) * dtype_bytes
        for name, shape in shapes.items()
    )


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


def estimate(size: Dimensions, holding: Holding) -> int:
    """Bytes of a decoder of which only the config is known, norms left out.

    A mixture of experts that is stored in 4 bits has only its routed experts in 4 bits: that is
    how such checkpoints are made.
    """
    plain = replace(holding, scheme="none")
    moe = size.moe
    num_dense = size.num_layers if moe is None else min(moe.num_dense_layers, size.num_layers)
    outside = plain if moe and holding.scheme == "compressed_tensors_int4" else holding
    embeddings = size.vocab_size * size.hidden_size * (1 if size.tie_word_embeddings else 2)
    total = plain.matrix_bytes(embeddings, 1)
    total += size.num_layers * outside.matrix_bytes(_attention_numel(size), size.hidden_size)
    total += num_dense * outside.matrix_bytes(
        3 * size.hidden_size * size.intermediate_size, size.intermediate_size
    )
    if moe:
        expert = 3 * size.hidden_size * moe.intermediate_size
        rows = moe.intermediate_size
        each = moe.num_experts * holding.matrix_bytes(expert, rows)
        each += moe.num_shared_experts * outside.matrix_bytes(expert, rows)
        each += plain.matrix_bytes(moe.num_experts * size.hidden_size, 1)  # the router
        total += (size.num_layers - num_dense) * each
    return total


def _attention_numel(size: Dimensions) -> int:
    """Numbers in the attention matrices of one layer."""
    hidden, heads, mla = size.hidden_size, size.num_heads, size.mla
    if mla is None:
        return hidden * size.head_dim * (2 * heads + 2 * size.num_kv_heads)
    q_head = mla.qk_nope_head_dim + mla.qk_rope_head_dim
    queries = (
        hidden * mla.q_lora_rank + mla.q_lora_rank * heads * q_head
        if mla.q_lora_rank
        else hidden * heads * q_head
    )
    down = hidden * (mla.kv_lora_rank + mla.qk_rope_head_dim)
    up = mla.kv_lora_rank * heads * (mla.qk_nope_head_dim + mla.v_head_dim)
    return queries + down + up + heads * mla.v_head_dim * hidden
