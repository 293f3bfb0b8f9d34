"""The tensors that a target or an EAGLE-3 head must consist of, by name and shape."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from specserve.checkpoint.architecture import Dimensions, text_config
from specserve.checkpoint.safetensors_header import TensorHeader

Shape = tuple[int, ...]

# Buffers that old checkpoints carry; they are recomputed from the config.
_IGNORED_SUFFIX = "rotary_emb.inv_freq"
_NUM_LISTED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTensors:
    """What must be there, and what may be there without being needed. Name to shape."""

    required: Mapping[str, Shape]
    optional: Mapping[str, Shape]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a decoder layer has beyond Llama's plain matrices and norms."""

    qkv_bias: bool
    output_bias: bool
    mlp_bias: bool
    qk_norm: bool


def layout(config: dict[str, Any]) -> Layout:
    """A Llama-family config's layout; biases by its switches, the rest by its family."""
    inner = text_config(config)
    family, attention_bias = inner.get("model_type"), bool(inner.get("attention_bias"))
    return Layout(
        qkv_bias=attention_bias or family == "qwen2",
        output_bias=attention_bias,
        mlp_bias=bool(inner.get("mlp_bias")),
        qk_norm=family == "qwen3",
    )


def target_tensors(extras: Layout, size: Dimensions) -> ExpectedTensors:
    """The tensors of a Llama-family target. With tied embeddings lm_head may still be stored."""
    required = {
        "model.embed_tokens.weight": (size.vocab_size, size.hidden_size),
        "model.norm.weight": (size.hidden_size,),
    }
    for layer in range(size.num_layers):
        required |= _block(f"model.layers.{layer}", extras, size, size.hidden_size)
    head = {"lm_head.weight": (size.vocab_size, size.hidden_size)}
    if size.tie_word_embeddings:
        return ExpectedTensors(required=required, optional=head)
    return ExpectedTensors(required=required | head, optional={})


def draft_tensors(
    extras: Layout,
    size: Dimensions,
    *,
    draft_vocab_size: int,
    target_hidden_size: int,
    num_aux: int,
    can_borrow_embedding: bool,
    can_borrow_lm_head: bool,
) -> ExpectedTensors:
    """The tensors of an EAGLE-3 head in its published layout.

    What can be borrowed from the target is optional. d2t is needed for a reduced vocabulary; t2d
    repeats it and is checked where it is stored.
    """
    required: dict[str, Shape] = {
        "fc.weight": (size.hidden_size, num_aux * target_hidden_size),
        "norm.weight": (size.hidden_size,),
        "midlayer.hidden_norm.weight": (size.hidden_size,),
        **_block("midlayer", extras, size, 2 * size.hidden_size),
    }
    embedding = {"embed_tokens.weight": (size.vocab_size, size.hidden_size)}
    lm_head = {"lm_head.weight": (draft_vocab_size, size.hidden_size)}
    vocabulary = {"d2t": (draft_vocab_size,)}
    optional: dict[str, Shape] = {"t2d": (size.vocab_size,)}
    for tensors, needed in (
        (embedding, not can_borrow_embedding),
        (lm_head, not can_borrow_lm_head),
        (vocabulary, draft_vocab_size < size.vocab_size),
    ):
        (required if needed else optional).update(tensors)
    return ExpectedTensors(required=required, optional=optional)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorDifference:
    """How the stored tensors differ from the expected ones; all sorted."""

    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    misshapen: tuple[tuple[str, Shape, Shape], ...]  # name, expected, found

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.misshapen)

    def __str__(self) -> str:
        """One phrase, with the first few of each by name."""
        misshapen = tuple(
            f"{name} {list(found)} instead of {list(expected)}"
            for name, expected, found in self.misshapen
        )
        parts = [
            ("missing", self.missing),
            ("unexpected", self.unexpected),
            ("of another shape", misshapen),
        ]
        return "; ".join(f"{label}: {_listed(names)}" for label, names in parts if names)


def compare(expected: ExpectedTensors, found: Mapping[str, TensorHeader]) -> TensorDifference:
    """Missing, unexpected and misshapen tensors. Truthy if there is any."""
    shapes = {**expected.optional, **expected.required}
    return TensorDifference(
        missing=tuple(sorted(set(expected.required) - set(found))),
        unexpected=tuple(sorted(_unknown(found, shapes))),
        misshapen=tuple(
            (name, shapes[name], found[name].shape)
            for name in sorted(set(found) & set(shapes))
            if found[name].shape != shapes[name]
        ),
    )


def _listed(names: tuple[str, ...]) -> str:
    rest = len(names) - _NUM_LISTED
    return ", ".join(names[:_NUM_LISTED]) + (f" and {rest} more" if rest > 0 else "")


def _unknown(found: Iterable[str], known: Mapping[str, Shape]) -> list[str]:
    return [name for name in found if name not in known and not name.endswith(_IGNORED_SUFFIX)]


def _block(prefix: str, extras: Layout, size: Dimensions, attention_input: int) -> dict[str, Shape]:
    """One decoder layer; `attention_input` is the width that q, k and v take."""
    hidden, intermediate = size.hidden_size, size.intermediate_size
    q_width, kv_width = size.num_heads * size.head_dim, size.num_kv_heads * size.head_dim
    attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
    biased: dict[str, tuple[Shape, bool]] = {
        f"{attention}.q_proj": ((q_width, attention_input), extras.qkv_bias),
        f"{attention}.k_proj": ((kv_width, attention_input), extras.qkv_bias),
        f"{attention}.v_proj": ((kv_width, attention_input), extras.qkv_bias),
        f"{attention}.o_proj": ((hidden, q_width), extras.output_bias),
        f"{mlp}.gate_proj": ((intermediate, hidden), extras.mlp_bias),
        f"{mlp}.up_proj": ((intermediate, hidden), extras.mlp_bias),
        f"{mlp}.down_proj": ((hidden, intermediate), extras.mlp_bias),
    }
    block: dict[str, Shape] = {
        f"{prefix}.input_layernorm.weight": (hidden,),
        f"{prefix}.post_attention_layernorm.weight": (hidden,),
        **{f"{name}.weight": shape for name, (shape, _) in biased.items()},
        **{f"{name}.bias": shape[:1] for name, (shape, bias) in biased.items() if bias},
    }
    if extras.qk_norm:
        block[f"{attention}.q_norm.weight"] = (size.head_dim,)
        block[f"{attention}.k_norm.weight"] = (size.head_dim,)
    return block
