"""Config.json -> the shape of a target or a draft. Pure; what isn't implemented is refused."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from specserve.errors import EngineError
from specserve.torch_engine.block import BlockShape
from specserve.torch_engine.rope import Llama3Scaling, Rope

_DEFAULT_THETA = 10000.0
_EXPERT_KEYS = ("num_experts", "num_local_experts", "n_routed_experts")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetShape:
    """A Llama-family decoder. Beyond `sliding_window` tokens its layers would see less than all."""

    num_layers: int
    vocab_size: int
    tie_embeddings: bool
    sliding_window: int | None
    rope: Rope
    block: BlockShape


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftShape:
    """An EAGLE-3 head: one block, fed by `num_aux` features of `target_hidden_size`."""

    num_aux: int
    target_hidden_size: int
    draft_vocab_size: int
    vocab_size: int
    rope: Rope
    block: BlockShape


def target_shape(config: Mapping[str, Any]) -> TargetShape:
    """The target that a config.json describes.

    Raises EngineError that lists everything in it that this engine doesn't compute.
    """
    family = config.get("model_type")
    faults = [*_unknown_family(family), *_not_computed(config)]
    if faults:
        raise EngineError(f"the torch engine can't compute this target: {'; '.join(faults)}")
    return TargetShape(
        num_layers=config["num_hidden_layers"],
        vocab_size=config["vocab_size"],
        tie_embeddings=config.get("tie_word_embeddings", False),
        sliding_window=_sliding_window(config),
        rope=_rope(config),
        block=_block(config, input_size=config["hidden_size"]),
    )


def draft_shape(config: Mapping[str, Any], *, num_aux: int, target_hidden_size: int) -> DraftShape:
    """The EAGLE-3 head that a config.json describes. Raises EngineError as `target_shape` does."""
    faults = [*_not_computed(config)]
    if config.get("num_hidden_layers", 1) != 1:
        faults.append(f"num_hidden_layers={config['num_hidden_layers']} (1 is)")
    if faults:
        raise EngineError(f"the torch engine can't compute this draft: {'; '.join(faults)}")
    return DraftShape(
        num_aux=num_aux,
        target_hidden_size=target_hidden_size,
        draft_vocab_size=config.get("draft_vocab_size", config["vocab_size"]),
        vocab_size=config["vocab_size"],
        rope=_rope(config),
        block=_block(config, input_size=2 * config["hidden_size"]),
    )


def _block(config: Mapping[str, Any], *, input_size: int) -> BlockShape:
    family = config.get("model_type")
    num_heads = config["num_attention_heads"]
    attention_bias = bool(config.get("attention_bias", False))
    return BlockShape(
        hidden_size=config["hidden_size"],
        input_size=input_size,
        intermediate_size=config["intermediate_size"],
        num_heads=num_heads,
        num_kv_heads=config.get("num_key_value_heads") or num_heads,
        head_dim=config.get("head_dim") or config["hidden_size"] // num_heads,
        norm_eps=config.get("rms_norm_eps", 1e-6),
        qkv_bias=attention_bias or family == "qwen2",
        output_bias=attention_bias,
        mlp_bias=bool(config.get("mlp_bias", False)),
        qk_norm=family == "qwen3",
    )


def _rope(config: Mapping[str, Any]) -> Rope:
    """Both spellings: `rope_parameters`, or `rope_theta` beside `rope_scaling`."""
    section = _rope_section(config)
    theta = section.get("rope_theta", config.get("rope_theta", _DEFAULT_THETA))
    scaling = None
    if _rope_type(section) == "llama3":
        scaling = Llama3Scaling(
            factor=section["factor"],
            low_freq_factor=section["low_freq_factor"],
            high_freq_factor=section["high_freq_factor"],
            original_positions=section["original_max_position_embeddings"],
        )
    return Rope(theta=float(theta), scaling=scaling)


def _rope_section(config: Mapping[str, Any]) -> Mapping[str, Any]:
    return config.get("rope_parameters") or config.get("rope_scaling") or {}


def _rope_type(section: Mapping[str, Any]) -> str:
    return str(section.get("rope_type") or section.get("type") or "default")


def _unknown_family(family: object) -> Iterator[str]:
    known = ("llama", "mistral", "qwen2", "qwen3")
    if family not in known:
        yield f"model_type={family!r} ({', '.join(known)} are)"


def _not_computed(config: Mapping[str, Any]) -> Iterator[str]:
    section = _rope_section(config)
    if _rope_type(section) not in ("default", "llama3"):
        yield f"rope type {_rope_type(section)!r} (default and llama3 are)"
    partial = section.get("partial_rotary_factor", config.get("partial_rotary_factor", 1.0))
    if partial != 1.0:
        yield f"partial_rotary_factor={partial} (1.0 is)"
    if config.get("hidden_act", "silu") != "silu":
        yield f"hidden_act={config['hidden_act']!r} (silu is)"
    for key in _EXPERT_KEYS:
        if config.get(key):
            yield f"{key}={config[key]}: a mixture of experts"
    if config.get("quantization_config"):
        yield "quantization_config: weights that are stored quantized"


def _sliding_window(config: Mapping[str, Any]) -> int | None:
    if config.get("use_sliding_window") is False:
        return None
    window: int | None = config.get("sliding_window")
    return window
