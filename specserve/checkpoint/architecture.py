"""The target architectures that can be served with EAGLE-3, and the dimensions of each.

An architecture has to hand out its auxiliary hidden states, so the set is closed: a name that is
not in the table is refused before anything is loaded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from specserve.errors import ConfigError, Problem
from specserve.rule_ids import RuleId

EngineName = Literal["torch", "sglang"]
_BOTH: frozenset[EngineName] = frozenset({"torch", "sglang"})
_SGLANG: frozenset[EngineName] = frozenset({"sglang"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One supported target family, and who can serve it."""

    name: str
    engines: frozenset[EngineName]


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "LlamaForCausalLM": Architecture(name="llama", engines=_BOTH),
        "MistralForCausalLM": Architecture(name="mistral", engines=_BOTH),
        "Qwen2ForCausalLM": Architecture(name="qwen2", engines=_BOTH),
        "Qwen3ForCausalLM": Architecture(name="qwen3", engines=_BOTH),
        "Qwen3MoeForCausalLM": Architecture(name="qwen3_moe", engines=_SGLANG),
        "DeepseekV3ForCausalLM": Architecture(name="deepseek_v3", engines=_SGLANG),
        "KimiK25ForConditionalGeneration": Architecture(name="kimi_k25", engines=_SGLANG),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mla:
    """Multi-head latent attention: all heads share one compressed key/value vector a token."""

    q_lora_rank: int | None
    kv_lora_rank: int
    qk_rope_head_dim: int
    qk_nope_head_dim: int
    v_head_dim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moe:
    """Mixture of experts in every layer from `num_dense_layers` on; one expert is a SwiGLU MLP."""

    num_experts: int
    num_shared_experts: int
    intermediate_size: int
    num_dense_layers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """The sizes of one decoder, target or draft, as its config states them.

    `max_positions` is the largest context that the rotary embedding was made for.
    """

    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    max_positions: int
    tie_word_embeddings: bool
    mla: Mla | None
    moe: Moe | None

    @property
    def kv_width(self) -> int:
        """Numbers that one token leaves in the cache of one layer: K and V, or MLA's vector."""
        if self.mla:
            return self.mla.kv_lora_rank + self.mla.qk_rope_head_dim
        return 2 * self.num_kv_heads * self.head_dim


def text_config(config: dict[str, Any]) -> dict[str, Any]:
    """The language model's part of a multimodal config; of a plain one, the config itself."""
    inner = config.get("text_config")
    return inner if isinstance(inner, dict) else config


def architecture_name(config: dict[str, Any]) -> str | None:
    """The first of `architectures`; None if the config names none."""
    names = config.get("architectures")
    return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None


def supported_names(engine: EngineName) -> list[str]:
    """Architectures that `engine` can serve, in the table's order."""
    return [name for name, known in ARCHITECTURES.items() if engine in known.engines]


def read_dimensions(config: dict[str, Any], *, key: str, path: str) -> Dimensions:
    """The sizes that config.json states.

    Raises ConfigError that names every missing or impossible field of `path`/config.json; `key`
    is the configuration key that led there.
    """
    fields = _Fields(text_config(config))
    dimensions = _dimensions(fields)
    if fields.faults:
        raise ConfigError(
            [
                Problem(
                    rule=RuleId.IMPOSSIBLE_DIMENSION,
                    key=key,
                    value=path,
                    expected=f"{name} in config.json to be {expected}, found {found!r}",
                    fix="take config.json from the model's own repository again",
                )
                for name, expected, found in fields.faults
            ]
        )
    return dimensions


def _dimensions(fields: "_Fields") -> Dimensions:
    num_heads = fields.count("num_attention_heads")
    num_kv_heads = fields.count("num_key_value_heads", default=num_heads)
    if num_heads % num_kv_heads:
        fields.fault("num_key_value_heads", f"a divisor of num_attention_heads={num_heads}")
    hidden_size = fields.count("hidden_size")
    return Dimensions(
        num_layers=fields.count("num_hidden_layers"),
        hidden_size=hidden_size,
        intermediate_size=fields.count("intermediate_size"),
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=fields.count("head_dim", default=max(1, hidden_size // num_heads)),
        vocab_size=fields.count("vocab_size"),
        max_positions=fields.count("max_position_embeddings"),
        tie_word_embeddings=fields.switch("tie_word_embeddings"),
        mla=_mla(fields) if fields.has("kv_lora_rank") else None,
        moe=_moe(fields),
    )


def _mla(fields: "_Fields") -> Mla:
    return Mla(
        q_lora_rank=fields.count("q_lora_rank") if fields.has("q_lora_rank") else None,
        kv_lora_rank=fields.count("kv_lora_rank"),
        qk_rope_head_dim=fields.count("qk_rope_head_dim"),
        qk_nope_head_dim=fields.count("qk_nope_head_dim"),
        v_head_dim=fields.count("v_head_dim"),
    )


def _moe(fields: "_Fields") -> Moe | None:
    for name in ("n_routed_experts", "num_experts"):
        if fields.has(name):
            return Moe(
                num_experts=fields.count(name),
                num_shared_experts=fields.count("n_shared_experts", default=0),
                intermediate_size=fields.count("moe_intermediate_size"),
                num_dense_layers=fields.count("first_k_dense_replace", default=0, least=0),
            )
    return None


class _Fields:
    """Reads a config's fields, and notes those that are missing or impossible."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self.faults: list[tuple[str, str, object]] = []

    def has(self, name: str) -> bool:
        return self._config.get(name) is not None

    def fault(self, name: str, expected: str) -> None:
        self.faults.append((name, expected, self._config.get(name)))

    def count(self, name: str, *, default: int | None = None, least: int = 1) -> int:
        """The integer `name`; on a fault a harmless stand-in, which never leaves this module."""
        value = self._config.get(name)
        if value is None and default is not None:
            return default
        if type(value) is not int or not least <= value < 2**31:
            self.fault(name, f"an integer of at least {least}")
            return 1
        return value

    def switch(self, name: str) -> bool:
        value = self._config.get(name, False)
        if type(value) is not bool:
            self.fault(name, "true or false")
        return value is True
