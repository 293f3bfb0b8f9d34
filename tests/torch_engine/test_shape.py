from typing import Any

import pytest

from specserve.errors import EngineError
from specserve.torch_engine.rope import Llama3Scaling, Rope
from specserve.torch_engine.shape import draft_shape, target_shape

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "vocab_size": 320,
}
LLAMA3_SECTION = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
LLAMA3 = Llama3Scaling(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_positions=64)


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({}, Rope(theta=10000.0, scaling=None)),
        ({"rope_theta": 5e5, "rope_scaling": None}, Rope(theta=5e5, scaling=None)),
        (
            {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}},
            Rope(theta=5e5, scaling=None),
        ),
        ({"rope_theta": 5e5, "rope_scaling": LLAMA3_SECTION}, Rope(theta=5e5, scaling=LLAMA3)),
        (
            {"rope_parameters": {**LLAMA3_SECTION, "rope_theta": 5e5}},
            Rope(theta=5e5, scaling=LLAMA3),
        ),
    ],
    ids=["absent", "top level", "rope_parameters", "llama3 scaling", "llama3 parameters"],
)
def test_both_spellings_of_rope_are_read(extra: dict[str, Any], expected: Rope) -> None:
    assert expected == target_shape({**LLAMA, **extra}).rope


@pytest.mark.parametrize(
    ("family", "flags"),
    [
        ("llama", (False, False, False)),
        ("mistral", (False, False, False)),
        ("qwen2", (True, False, False)),
        ("qwen3", (False, False, True)),
    ],
)
def test_families_differ_in_their_optional_tensors(
    family: str, flags: tuple[bool, bool, bool]
) -> None:
    block = target_shape({**LLAMA, "model_type": family}).block

    assert flags == (block.qkv_bias, block.output_bias, block.qk_norm)


def test_absent_sizes_follow_from_others() -> None:
    config = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
    block = target_shape(config).block

    assert (4, 16) == (block.num_kv_heads, block.head_dim)


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"model_type": "gpt_oss"}, "model_type='gpt_oss'"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "rope type 'yarn'"),
        ({"rope_scaling": {"type": "dynamic", "factor": 4.0}}, "rope type 'dynamic'"),
        ({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}}, "partial"),
        ({"hidden_act": "gelu"}, "hidden_act='gelu'"),
        ({"num_local_experts": 8}, "mixture of experts"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantized"),
    ],
)
def test_what_is_not_computed_is_refused_by_name(extra: dict[str, Any], words: str) -> None:
    with pytest.raises(EngineError, match=words):
        target_shape({**LLAMA, **extra})


def test_everything_that_is_not_computed_is_listed_at_once() -> None:
    with pytest.raises(EngineError, match=r"rope type 'yarn'.*hidden_act='gelu'"):
        target_shape({**LLAMA, "hidden_act": "gelu", "rope_scaling": {"type": "yarn"}})


@pytest.mark.parametrize(
    ("extra", "window"),
    [
        ({}, None),
        ({"sliding_window": None}, None),
        ({"sliding_window": 128}, 128),
        ({"sliding_window": 128, "use_sliding_window": True}, 128),
        ({"sliding_window": 128, "use_sliding_window": False}, None),
    ],
)
def test_the_sliding_window_is_read_where_it_is_in_use(
    extra: dict[str, Any], window: int | None
) -> None:
    assert window == target_shape({**LLAMA, **extra}).sliding_window


def test_a_draft_of_several_layers_is_refused() -> None:
    with pytest.raises(EngineError, match="num_hidden_layers=8"):
        draft_shape(LLAMA, num_aux=3, target_hidden_size=64)


def test_a_draft_block_reads_twice_the_hidden_size() -> None:
    shape = draft_shape({**LLAMA, "num_hidden_layers": 1}, num_aux=3, target_hidden_size=48)

    assert (128, 3, 48, 320) == (
        shape.block.input_size,
        shape.num_aux,
        shape.target_hidden_size,
        shape.draft_vocab_size,
    )
