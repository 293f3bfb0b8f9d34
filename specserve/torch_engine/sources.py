"""Which stored tensors each parameter is made of: fused, reordered or repeated on the way in."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from specserve.torch_engine.block import BlockShape
from specserve.torch_engine.rope import pair_rows
from specserve.torch_engine.shape import DraftShape, TargetShape
from specserve.torch_engine.stored import StoredTensors


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One stored tensor. `head_dim` reorders its rows to rotary pairs, `num_heads` repeats it."""

    name: str
    head_dim: int | None = None
    num_heads: int | None = None

    def read(self, stored: StoredTensors, dtype: torch.dtype) -> Tensor:
        """The tensor as the parameter holds it."""
        tensor = stored.read(self.name, dtype)
        if self.head_dim is not None:
            tensor = pair_rows(tensor, self.head_dim)
        return tensor if self.num_heads is None else tensor.expand(self.num_heads, -1)


# Parameter of a module -> the parts that are stacked to it.
Sources = Mapping[str, tuple[Part, ...]]


def target_sources(shape: TargetShape) -> Sources:
    """What lies around a target's layers."""
    sources = {
        "embed_tokens.weight": (Part(name="model.embed_tokens.weight"),),
        "norm.weight": (Part(name="model.norm.weight"),),
    }
    if not shape.tie_embeddings:
        sources["lm_head.weight"] = (Part(name="lm_head.weight"),)
    return sources


def target_layer_sources(shape: TargetShape, layer: int) -> Sources:
    """One of a target's layers."""
    return _block_sources(f"model.layers.{layer}", shape.block)


def draft_sources(shape: DraftShape, *, borrowed: tuple[str, ...]) -> Sources:
    """What lies around a draft's block, but for what is borrowed, and d2t."""
    names = {
        "embed_tokens.weight": "embed_tokens.weight",
        "fc.weight": "fc.weight",
        "hidden_norm.weight": "midlayer.hidden_norm.weight",
        "norm.weight": "norm.weight",
        "lm_head.weight": "lm_head.weight",
    }
    lent = {f"{name}.weight" for name in borrowed}
    return {own: (Part(name=name),) for own, name in names.items() if own not in lent}


def draft_layer_sources(shape: DraftShape) -> Sources:
    """A draft's one block."""
    return _block_sources("midlayer", shape.block)


def _block_sources(prefix: str, shape: BlockShape) -> Sources:
    attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"

    def projections(kind: str) -> dict[str, tuple[Part, ...]]:
        return {
            f"qkv_proj.{kind}": (
                Part(name=f"{attention}.q_proj.{kind}", head_dim=shape.head_dim),
                Part(name=f"{attention}.k_proj.{kind}", head_dim=shape.head_dim),
                Part(name=f"{attention}.v_proj.{kind}"),
            ),
            f"o_proj.{kind}": (Part(name=f"{attention}.o_proj.{kind}"),),
            f"gate_up_proj.{kind}": (
                Part(name=f"{mlp}.gate_proj.{kind}"),
                Part(name=f"{mlp}.up_proj.{kind}"),
            ),
            f"down_proj.{kind}": (Part(name=f"{mlp}.down_proj.{kind}"),),
        }

    biases = projections("bias")
    sources = projections("weight")
    for norm in ("input_layernorm.weight", "post_attention_layernorm.weight"):
        sources[norm] = (Part(name=f"{prefix}.{norm}"),)
    if shape.qkv_bias:
        sources["qkv_proj.bias"] = biases["qkv_proj.bias"]
    if shape.output_bias:
        sources["o_proj.bias"] = biases["o_proj.bias"]
    if shape.mlp_bias:
        sources |= {name: biases[name] for name in ("gate_up_proj.bias", "down_proj.bias")}
    if shape.qk_norm:
        sources["qk_norm.weight"] = tuple(
            Part(name=f"{attention}.{name}.weight", head_dim=shape.head_dim, num_heads=heads)
            for name, heads in (("q_norm", shape.num_heads), ("k_norm", shape.num_kv_heads))
        )
    return sources
