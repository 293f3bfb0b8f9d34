"""Draft models of engine=sglang that are no EAGLE-3 heads: counted, or estimated from a config."""

from collections.abc import Callable
from typing import Any

import pytest

from specserve.checkpoint.header import CheckpointFacts
from specserve.checkpoint.safetensors_header import TensorHeader
from specserve.facts import Facts
from specserve.plan import Plan

MakePlan = Callable[..., Plan]
STANDALONE = ["speculation=standalone", "policy=always", "speculation.draft.path=small"]
SMALL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "max_position_embeddings": 131072,
    "num_attention_heads": 32,
    "num_hidden_layers": 16,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "vocab_size": 128256,
}


def with_draft(h200: Facts, **changes: Any) -> Facts:  # noqa: ANN401 - any field of the facts
    assert h200.draft is not None
    draft = {"config": SMALL, "sha256": "0" * 64} | changes
    return h200.model_copy(update={"draft": h200.draft.model_copy(update=draft)})


def test_a_standalone_draft_is_a_whole_decoder(h200: Facts, plan_of: MakePlan) -> None:
    """Llama 3.2 1B: 1.24 billion parameters, 16 layers of 8 heads of 64."""
    memory = plan_of(with_draft(h200), "engine=sglang", *STANDALONE).memory

    assert memory.draft_weight_bytes == pytest.approx(2 * 1.236e9, rel=0.001)
    assert 16 * 2 * 8 * 64 * 2 == memory.draft_kv_bytes_per_token


def test_a_draft_whose_files_are_here_is_counted(h200: Facts, plan_of: MakePlan) -> None:
    tensors = {"model.layers.0.mlp.up_proj.weight": TensorHeader(dtype="BF16", shape=(2048, 4096))}
    facts = with_draft(h200, tensors=tensors)

    memory = plan_of(facts, "engine=sglang", *STANDALONE).memory

    assert 2048 * 4096 * 2 == memory.draft_weight_bytes


def test_layers_that_the_target_brings_share_its_embedding(h200: Facts, plan_of: MakePlan) -> None:
    assert h200.target is not None
    config = h200.target.config | {"num_nextn_predict_layers": 1}
    target: CheckpointFacts = h200.target.model_copy(update={"config": config})
    facts = h200.model_copy(update={"target": target, "draft": None})

    memory = plan_of(
        facts, "engine=sglang", "speculation=mtp", "speculation.draft.path=null"
    ).memory

    layer = 4096 * 128 * (2 * 32 + 2 * 8) + 3 * 4096 * 14336
    norms = 3 * 4096
    assert 2 * (layer + norms + 2 * 4096**2) == memory.draft_weight_bytes
    assert 2 * 8 * 128 * 2 == memory.draft_kv_bytes_per_token


@pytest.mark.parametrize(("dtype", "num_bytes"), [("fp8_e4m3", 1), ("bfloat16", 2), ("auto", 2)])
def test_keys_and_values_take_what_sglang_is_told(
    h200: Facts, plan_of: MakePlan, dtype: str, num_bytes: int
) -> None:
    memory = plan_of(h200, "engine=sglang", f"engine.kv_cache_dtype={dtype}").memory

    assert 32 * 2 * 8 * 128 * num_bytes == memory.kv_bytes_per_token
    assert 2 * 8 * 128 * num_bytes == memory.draft_kv_bytes_per_token
