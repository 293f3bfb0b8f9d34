from typing import Any

import pytest

from specserve.checkpoint.architecture import (
    ARCHITECTURES,
    architecture_name,
    read_dimensions,
    supported_names,
    text_config,
)
from specserve.errors import ConfigError

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
}
KIMI: dict[str, Any] = {
    "text_config": {
        **LLAMA,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "hidden_size": 7168,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
        "n_routed_experts": 384,
        "n_shared_experts": 1,
        "moe_intermediate_size": 2048,
        "first_k_dense_replace": 1,
    }
}


def problems(config: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_dimensions(config, key="model.path", path="/m")
    return [problem.expected for problem in caught.value.problems]


def test_the_torch_engine_serves_the_four_llama_families() -> None:
    assert [
        "LlamaForCausalLM",
        "MistralForCausalLM",
        "Qwen2ForCausalLM",
        "Qwen3ForCausalLM",
    ] == supported_names("torch")


def test_sglang_serves_everything_in_the_table() -> None:
    assert list(ARCHITECTURES) == supported_names("sglang")


def test_keys_and_values_of_grouped_heads_take_two_vectors_a_head() -> None:
    size = read_dimensions(LLAMA, key="model.path", path="/m")

    assert (128, 2 * 8 * 128) == (size.head_dim, size.kv_width)


def test_mla_caches_one_compressed_vector_and_the_rotary_part() -> None:
    size = read_dimensions(KIMI, key="model.path", path="/m")

    assert 512 + 64 == size.kv_width
    assert size.moe is not None
    assert (384, 1, 1) == (
        size.moe.num_experts,
        size.moe.num_shared_experts,
        size.moe.num_dense_layers,
    )


def test_an_own_head_dim_wins_over_the_quotient() -> None:
    assert 64 == read_dimensions(LLAMA | {"head_dim": 64}, key="k", path="/m").head_dim


def test_heads_default_to_multi_head_attention() -> None:
    config = {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}

    assert 32 == read_dimensions(config, key="k", path="/m").num_kv_heads


@pytest.mark.parametrize("value", [None, 0, -1, 2.5, "4096", True, [], 2**40])
def test_an_impossible_field_is_named_with_what_was_found(value: object) -> None:
    [found] = problems(LLAMA | {"hidden_size": value})

    assert f"hidden_size in config.json to be an integer of at least 1, found {value!r}" == found


def test_every_missing_field_is_told_at_once() -> None:
    named = {text.split(" ")[0] for text in problems({})}

    assert {
        "num_hidden_layers",
        "hidden_size",
        "intermediate_size",
        "num_attention_heads",
        "vocab_size",
        "max_position_embeddings",
    } == named


def test_heads_that_do_not_share_out_evenly_are_refused() -> None:
    [found] = problems(LLAMA | {"num_key_value_heads": 5})

    assert "a divisor of num_attention_heads=32" in found


def test_tie_word_embeddings_must_be_a_switch() -> None:
    [found] = problems(LLAMA | {"tie_word_embeddings": "yes"})

    assert "true or false" in found


@pytest.mark.parametrize("names", [None, [], "LlamaForCausalLM", [3], {}])
def test_a_config_without_a_usable_architecture_has_no_name(names: object) -> None:
    assert architecture_name({"architectures": names}) is None


@pytest.mark.parametrize("inner", [None, [], "text"])
def test_only_an_object_counts_as_the_text_config(inner: object) -> None:
    config = {"text_config": inner, "hidden_size": 1}

    assert config == text_config(config)
