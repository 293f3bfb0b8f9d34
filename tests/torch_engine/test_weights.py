import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from specserve.errors import EngineError
from specserve.testing.checkpoints import DtypeName, write_draft, write_target
from specserve.testing.plans import draft_plan, target_plan
from specserve.torch_engine.attention import PackedStep, Step
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.draft import Draft
from specserve.torch_engine.target import Target, TargetOutput
from specserve.torch_engine.weights import check_features, load_draft, load_target

CPU = torch.device("cpu")
AUX = (2, 4, 5)
Borrowed = Literal["embed_tokens", "lm_head"]
DTYPES: tuple[DtypeName, ...] = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Folders:
    target: Path
    draft: Path


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    target = write_target(tmp_path / "target", architecture="llama")
    return Folders(target, write_draft(tmp_path / "draft", target_folder=target))


def edit(folder: Path, change: Callable[[dict[str, Tensor]], None]) -> None:
    """Change the stored tensors of a checkpoint."""
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def load_pair_draft(folders: Folders, borrowed: tuple[Borrowed, ...] = ("embed_tokens",)) -> Draft:
    target = load_target(target_plan(folders.target), AUX, CPU)
    plan = draft_plan(folders.draft, aux_layer_inputs=AUX, borrowed=borrowed)
    return load_draft(plan, target, CPU)


def test_missing_and_unexpected_tensors_are_one_error(folders: Folders) -> None:
    def rename(tensors: dict[str, Tensor]) -> None:
        tensors["model.layers.0.self_attn.q.weight"] = tensors.pop(
            "model.layers.0.self_attn.q_proj.weight"
        )

    edit(folders.target, rename)

    with pytest.raises(
        EngineError,
        match=r"missing tensors: model\.layers\.0\.self_attn\.q_proj\.weight; "
        r"unexpected tensors: model\.layers\.0\.self_attn\.q\.weight",
    ):
        load_target(target_plan(folders.target), AUX, CPU)


def test_a_draft_under_another_prefix_lists_both_sides(folders: Folders) -> None:
    """E03: layers.0 for midlayer once meant random weights and a healthy server."""

    def rename(tensors: dict[str, Tensor]) -> None:
        for name in [n for n in tensors if n.startswith("midlayer.")]:
            tensors[name.replace("midlayer", "layers.0")] = tensors.pop(name)

    edit(folders.draft, rename)

    with pytest.raises(EngineError, match=r"missing.*midlayer.*unexpected.*layers\.0"):
        load_pair_draft(folders)


@pytest.mark.parametrize("which", ["target", "draft"])
def test_a_tensor_of_another_shape_is_refused_by_name(folders: Folders, which: str) -> None:
    def cut(tensors: dict[str, Tensor]) -> None:
        for name in [n for n in tensors if n.endswith("o_proj.weight")]:
            tensors[name] = tensors[name][:-1].contiguous()

    edit(getattr(folders, which), cut)

    with pytest.raises(EngineError, match=r"o_proj\.weight has the shape \[63, 64\]"):
        load_pair_draft(folders)


@pytest.mark.parametrize("which", ["target", "draft"])
def test_nan_in_a_weight_is_refused_by_name(folders: Folders, which: str) -> None:
    def spoil(tensors: dict[str, Tensor]) -> None:
        name = next(n for n in tensors if n.endswith("up_proj.weight"))
        tensors[name][3, 5] = float("nan")

    edit(getattr(folders, which), spoil)

    with pytest.raises(EngineError, match=r"up_proj\.weight holds NaN"):
        load_pair_draft(folders)


def test_recomputed_buffers_of_old_checkpoints_are_ignored(folders: Folders) -> None:
    edit(
        folders.target,
        lambda tensors: tensors.update({"model.rotary_emb.inv_freq": torch.ones(8)}),
    )

    load_target(target_plan(folders.target), AUX, CPU)


def test_tied_embeddings_may_be_stored_twice(tmp_path: Path) -> None:
    write_target(tmp_path, architecture="llama", tie_embeddings=True)

    def store_head(tensors: dict[str, Tensor]) -> None:
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()

    edit(tmp_path, store_head)

    load_target(target_plan(tmp_path), AUX, CPU)


def test_shards_hold_the_same_target_as_one_file(folders: Folders, tmp_path: Path) -> None:
    whole = load_target(target_plan(folders.target), AUX, CPU)
    tensors = load_file(folders.target / "model.safetensors")
    weight_map = {name: f"part-{i % 3}.safetensors" for i, name in enumerate(tensors)}
    for file in set(weight_map.values()):
        part = {name: tensors[name] for name in tensors if weight_map[name] == file}
        save_file(part, folders.target / file)
    (folders.target / "model.safetensors").unlink()
    (folders.target / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": weight_map})
    )

    sharded = load_target(target_plan(folders.target), AUX, CPU)

    expected = whole.state_dict()
    found = sharded.state_dict()
    assert set(expected) == set(found)
    assert all(torch.equal(expected[name], found[name]) for name in expected)


@pytest.mark.parametrize("stored", DTYPES)
@pytest.mark.parametrize("asked", DTYPES)
def test_every_stored_dtype_is_held_in_the_planned_one(
    tmp_path: Path, stored: DtypeName, asked: DtypeName
) -> None:
    """E02: target and draft of different stored dtypes compute in one."""
    target_folder = write_target(tmp_path / "target", architecture="llama", dtype=stored)
    draft_folder = write_draft(tmp_path / "draft", target_folder=target_folder, dtype="float16")
    target = load_target(target_plan(target_folder, dtype=asked), AUX, CPU)
    draft = load_draft(draft_plan(draft_folder, aux_layer_inputs=AUX, dtype=asked), target, CPU)

    dtypes = {p.dtype for p in (*target.parameters(), *draft.parameters())}
    assert {getattr(torch, asked)} == dtypes


def test_nothing_is_left_on_the_meta_device_and_nothing_trains(folders: Folders) -> None:
    draft = load_pair_draft(folders)

    tensors = [*draft.parameters(), *draft.buffers()]
    assert all(not tensor.is_meta and not tensor.requires_grad for tensor in tensors)


def test_what_is_borrowed_is_shared_not_copied(folders: Folders) -> None:
    target = load_target(target_plan(folders.target), AUX, CPU)
    draft = load_draft(draft_plan(folders.draft, aux_layer_inputs=AUX), target, CPU)

    assert draft.embed_tokens.weight is target.embed_tokens.weight


def test_the_lm_head_is_borrowed_for_the_full_vocabulary(folders: Folders) -> None:
    write_draft(
        folders.draft,
        target_folder=folders.target,
        draft_vocab_size=320,
        with_lm_head=False,
        with_vocab_map=False,
    )
    target = load_target(target_plan(folders.target), AUX, CPU)
    plan = draft_plan(folders.draft, aux_layer_inputs=AUX, borrowed=("embed_tokens", "lm_head"))

    assert load_draft(plan, target, CPU).lm_head.weight is target.lm_head.weight


def test_the_lm_head_is_not_borrowed_for_a_reduced_vocabulary(folders: Folders) -> None:
    write_draft(folders.draft, target_folder=folders.target, with_lm_head=False)

    with pytest.raises(EngineError, match=r"lm_head: it needs \[128, 64\].*has \[320, 64\]"):
        load_pair_draft(folders, borrowed=("embed_tokens", "lm_head"))


def test_what_the_plan_does_not_borrow_must_be_stored(folders: Folders) -> None:
    with pytest.raises(EngineError, match=r"missing tensors: embed_tokens\.weight"):
        load_pair_draft(folders, borrowed=())


def test_what_the_plan_borrows_must_not_be_stored(folders: Folders) -> None:
    write_draft(folders.draft, target_folder=folders.target, with_embed=True)

    with pytest.raises(EngineError, match=r"unexpected tensors: embed_tokens\.weight"):
        load_pair_draft(folders)


def test_a_reduced_vocabulary_needs_d2t(folders: Folders) -> None:
    """E04: without the map draft ids were taken for the first target ids."""
    write_draft(folders.draft, target_folder=folders.target, with_vocab_map=False)

    with pytest.raises(EngineError, match="missing tensors: d2t"):
        load_pair_draft(folders)


@pytest.mark.parametrize(
    "d2t",
    [torch.arange(128) + 100, torch.full((128,), -1), torch.zeros(5, dtype=torch.int64)],
    ids=["too far", "negative", "too short"],
)
def test_d2t_must_lead_into_the_target_vocabulary(folders: Folders, d2t: Tensor) -> None:
    edit(folders.draft, lambda tensors: tensors.update({"d2t": d2t}))

    with pytest.raises(EngineError, match="d2t must hold 128 offsets"):
        load_pair_draft(folders)


def test_a_fusion_layer_for_another_number_of_features_is_refused(folders: Folders) -> None:
    """B04: 3 expected by fc, 2 given by the plan."""
    write_draft(folders.draft, target_folder=folders.target, num_aux=2)

    with pytest.raises(EngineError, match=r"fc\.weight has the shape \[64, 128\].*\[64, 192\]"):
        load_pair_draft(folders)


def test_a_sliding_window_smaller_than_the_context_is_refused(tmp_path: Path) -> None:
    write_target(tmp_path, architecture="mistral", config_overrides={"sliding_window": 128})
    plan = target_plan(tmp_path)

    with pytest.raises(EngineError, match=r"sliding window 128 .* context 512"):
        load_target(plan, AUX, CPU)

    load_target(plan.model_copy(update={"context_length": 128}), AUX, CPU)


class WithoutCapture(Target):
    """A target that was told its aux layers and hands nothing out."""

    def forward(self, tokens: Tensor, step: Step | PackedStep, cache: KVCache) -> TargetOutput:
        return super().forward(tokens, step, cache)._replace(features=None)


def test_features_that_are_not_captured_fail_the_load(folders: Folders) -> None:
    """B02: the ids were stored, the layers never marked."""
    target = load_target(target_plan(folders.target), AUX, CPU)
    check_features(target, CPU)
    target.__class__ = WithoutCapture

    with pytest.raises(EngineError, match=r"expected 3 captured features .*, got 0"):
        check_features(target, CPU)


def test_an_aux_layer_that_does_not_exist_fails_the_load(folders: Folders) -> None:
    with pytest.raises(EngineError, match=r"expected 3 captured features .*\[2, 4, 9\].*, got 2"):
        load_target(target_plan(folders.target), (2, 4, 9), CPU)
