from typing import Any

import pytest

from specserve.checkpoint.architecture import Dimensions, read_dimensions, text_config
from specserve.facts import Facts
from specserve.plan.parameters import Part, matrices, parameters


def published(config: dict[str, Any]) -> dict[Part, int]:
    """DeepSeek-V3's architecture counted from its paper's section 2.1, with config.json's names.

    Written without looking at specserve's formula, layer by layer.
    """
    c = text_config(config)
    hidden, layers, heads = c["hidden_size"], c["num_hidden_layers"], c["num_attention_heads"]
    nope, rope, value = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
    moe_layers = layers - c["first_k_dense_replace"]
    expert = 3 * hidden * c["moe_intermediate_size"]
    attention = norms = 0
    for _ in range(layers):
        attention += hidden * c["q_lora_rank"]  # W^DQ
        attention += c["q_lora_rank"] * heads * (nope + rope)  # W^UQ and W^QR
        attention += hidden * (c["kv_lora_rank"] + rope)  # W^DKV and W^KR
        attention += c["kv_lora_rank"] * heads * (nope + value)  # W^UK and W^UV
        attention += heads * value * hidden  # W^O
        norms += 2 * hidden + c["q_lora_rank"] + c["kv_lora_rank"]
    return {
        "embedding": c["vocab_size"] * hidden,
        "lm_head": c["vocab_size"] * hidden,
        "attention": attention,
        "dense_mlp": c["first_k_dense_replace"] * 3 * hidden * c["intermediate_size"],
        "routed_experts": moe_layers * c["n_routed_experts"] * expert,
        "shared_experts": moe_layers * c["n_shared_experts"] * expert,
        "routers": moe_layers * c["n_routed_experts"] * hidden,
        "norms": norms + hidden,
    }


@pytest.fixture
def kimi_size(kimi: Facts) -> Dimensions:
    assert kimi.target is not None
    return read_dimensions(kimi.target.config, key="model.path", path="kimi")


def test_kimi_k25_has_its_published_trillion_of_parameters(
    kimi: Facts, kimi_size: Dimensions
) -> None:
    """1.03 trillion by the model card ("1T"), nearly all of them in routed experts."""
    assert kimi.target is not None
    by_part = parameters(kimi_size)

    assert published(kimi.target.config) == by_part
    assert {
        "embedding": 1_174_405_120,
        "lm_head": 1_174_405_120,
        "attention": 6_168_444_928,
        "dense_mlp": 396_361_728,
        "routed_experts": 1_014_686_023_680,
        "shared_experts": 2_642_411_520,
        "routers": 165_150_720,
        "norms": 1_006_592,
    } == by_part
    assert 1_026_408_209_408 == sum(by_part.values())


def test_the_parameters_that_a_token_activates_are_the_published_32_billion(
    kimi_size: Dimensions,
) -> None:
    """8 of the 384 routed experts; the card counts neither the embedding nor more than this."""
    by_part = parameters(kimi_size)
    active = sum(by_part.values()) - by_part["routed_experts"] * (384 - 8) // 384

    assert active - by_part["embedding"] == pytest.approx(32e9, rel=0.02)


def test_only_compressions_routers_and_norms_are_copied_to_every_gpu(
    kimi_size: Dimensions,
) -> None:
    copied = {(one.part, one.num_rows) for one in matrices(kimi_size) if one.spread == "copied"}

    assert {
        ("attention", 1536),
        ("attention", 512 + 64),
        ("routers", 384),
        ("norms", 7168),
        ("norms", 1536),
        ("norms", 512),
    } == copied
