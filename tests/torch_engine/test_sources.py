from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open

from specserve.testing.checkpoints import Architecture, write_draft, write_target
from specserve.testing.plans import draft_plan, target_plan
from specserve.torch_engine.shape import draft_shape, target_shape
from specserve.torch_engine.sources import (
    Sources,
    draft_layer_sources,
    draft_sources,
    target_layer_sources,
    target_sources,
)


def names(*all_sources: Sources) -> list[str]:
    return sorted(
        part.name for sources in all_sources for parts in sources.values() for part in parts
    )


def stored_names(folder: Path) -> list[str]:
    with safe_open(folder / "model.safetensors", framework="pt") as file:
        return sorted(file.keys())


@pytest.mark.parametrize(
    ("architecture", "options"),
    [
        ("llama", {}),
        ("llama", {"tie_embeddings": True}),
        ("llama", {"config_overrides": {"attention_bias": True, "mlp_bias": True}}),
        ("mistral", {}),
        ("qwen2", {}),
        ("qwen3", {}),
    ],
)
def test_each_stored_tensor_of_a_target_goes_to_one_place(
    tmp_path: Path, architecture: Architecture, options: dict[str, Any]
) -> None:
    """As transformers names them, all of them, none twice."""
    write_target(tmp_path, architecture=architecture, num_layers=2, **options)
    shape = target_shape(target_plan(tmp_path).config)

    used = names(target_sources(shape), *(target_layer_sources(shape, i) for i in range(2)))

    assert stored_names(tmp_path) == used


@pytest.mark.parametrize("with_embed", [False, True])
@pytest.mark.parametrize("with_lm_head", [False, True])
def test_each_stored_tensor_of_a_draft_goes_to_one_place(
    tmp_path: Path, with_embed: bool, with_lm_head: bool
) -> None:
    target = write_target(tmp_path / "target", architecture="llama", num_layers=1)
    folder = write_draft(
        tmp_path / "draft",
        target_folder=target,
        draft_vocab_size=320,
        with_embed=with_embed,
        with_lm_head=with_lm_head,
        with_vocab_map=False,
    )
    plan = draft_plan(folder, aux_layer_inputs=(1, 2, 3))
    shape = draft_shape(plan.config, num_aux=3, target_hidden_size=64)
    stored = {"embed_tokens": with_embed, "lm_head": with_lm_head}
    borrowed = tuple(name for name, is_stored in stored.items() if not is_stored)

    used = names(draft_sources(shape, borrowed=borrowed), draft_layer_sources(shape))

    assert stored_names(folder) == used


def test_only_queries_and_keys_are_reordered(tmp_path: Path) -> None:
    write_target(tmp_path, architecture="qwen2", num_layers=1)
    sources = target_layer_sources(target_shape(target_plan(tmp_path).config), 0)

    reordered = {
        part.name.removeprefix("model.layers.0.self_attn.")
        for parts in sources.values()
        for part in parts
        if part.head_dim is not None
    }
    assert {f"{p}_proj.{kind}" for p in "qk" for kind in ("weight", "bias")} == reordered
