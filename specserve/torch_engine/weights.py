"""Checkpoint folders -> models on their device, with nothing missing, unused or broken."""

from collections.abc import Iterable
from pathlib import Path

import torch
from torch import nn

from specserve.errors import EngineError
from specserve.plan import DraftPlan, TargetPlan
from specserve.torch_engine.attention import chain_step
from specserve.torch_engine.borrow import borrow
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.draft import Draft
from specserve.torch_engine.linear import speed_up
from specserve.torch_engine.quantization import quantize, read_quantization
from specserve.torch_engine.shape import draft_shape, target_shape
from specserve.torch_engine.sources import (
    Sources,
    draft_layer_sources,
    draft_sources,
    target_layer_sources,
    target_sources,
)
from specserve.torch_engine.stored import StoredTensors, open_stored
from specserve.torch_engine.target import Target

_NUM_LISTED = 8
# Up to so many bytes an lm_head that is tied to the embedding gets a packed copy beside it.
_LARGEST_COPY_BYTES = 64 * 2**20
# Old checkpoints store what is computed from the config.
_RECOMPUTED_SUFFIX = "rotary_emb.inv_freq"


def load_target(
    plan: TargetPlan, aux_layer_inputs: tuple[int, ...], device: torch.device
) -> Target:
    """The target of the plan, which hands out what enters the layers in `aux_layer_inputs`.

    Raises EngineError for a config that can't be computed, tensors that are missing, unexpected,
    misshapen or not finite, a file that can't be read, and features that aren't captured.
    """
    shape = target_shape(plan.config)
    if shape.sliding_window is not None and shape.sliding_window < plan.context_length:
        raise EngineError(
            f"the target's sliding window {shape.sliding_window} is smaller than the context "
            f"{plan.context_length}, and windowed attention isn't computed"
        )
    with torch.device("meta"):
        target = Target(shape, aux_layer_inputs, device)
    around = target_sources(shape)
    blocks = [target_layer_sources(shape, layer) for layer in range(shape.num_layers)]
    quantization = read_quantization(plan.quantization, plan.quantization_group_size)
    with open_stored(Path(plan.path), device) as stored:
        _check_names(stored, [around, *blocks], {"lm_head.weight"} if shape.tie_embeddings else ())
        _fill(target, around, stored, getattr(torch, plan.dtype))
        for block, sources in zip(target.layers, blocks, strict=True):
            _fill(block, sources, stored, getattr(torch, plan.dtype))
            quantize(block, quantization)
            speed_up(block)
    if shape.tie_embeddings:
        target.lm_head.weight = target.embed_tokens.weight
    if not shape.tie_embeddings or target.embed_tokens.weight.nbytes <= _LARGEST_COPY_BYTES:
        speed_up(target.lm_head)
    check_features(target, device)
    return target


def load_draft(plan: DraftPlan, target: Target, device: torch.device) -> Draft:
    """The EAGLE-3 head of the plan, with what it borrows from `target`.

    Raises EngineError as `load_target` does, and for d2t that leaves the target's vocabulary.
    """
    shape = draft_shape(
        plan.config,
        num_aux=len(plan.aux_layer_inputs),
        target_hidden_size=target.shape.block.hidden_size,
    )
    with torch.device("meta"):
        draft = Draft(shape, device)
    dtype = getattr(torch, plan.dtype)
    around, block = draft_sources(shape, borrowed=plan.borrowed), draft_layer_sources(shape)
    with open_stored(Path(plan.path), device) as stored:
        _check_names(stored, [around, block], ("d2t", "t2d"))
        _fill(draft, around, stored, dtype)
        _fill(draft.midlayer, block, stored, dtype)
        _set_vocab_map(draft, stored)
    quantization = read_quantization(plan.quantization, plan.quantization_group_size)
    for module in (draft.fc, draft.midlayer):
        quantize(module, quantization)
    speed_up(draft)
    borrow(draft, target, plan.borrowed, dtype)
    return draft


def check_features(target: Target, device: torch.device) -> None:
    """Pass one token; raise EngineError unless every requested feature comes back."""
    block = target.shape.block
    cache = KVCache(
        num_layers=target.shape.num_layers,
        num_rows=1,
        row_tokens=2,
        num_kv_heads=block.num_kv_heads,
        head_dim=block.head_dim,
        dtype=target.norm.weight.dtype,
        device=device,
    )
    zero = torch.zeros((1, 1), dtype=torch.int64, device=device)
    step = chain_step(zero[0], first_row=0, num_queries=1, row_tokens=2, kv_tokens=1, see_all=True)
    with torch.inference_mode():
        features = target(zero, step, cache).features
    found = 0 if features is None else features.shape[-1] // block.hidden_size
    if found != len(target.aux_layer_inputs):
        raise EngineError(
            f"expected {len(target.aux_layer_inputs)} captured features (aux layers "
            f"{list(target.aux_layer_inputs)} of {target.shape.num_layers}), got {found}"
        )


def _check_names(
    stored: StoredTensors, all_sources: Iterable[Sources], optional: Iterable[str]
) -> None:
    """One error for everything missing and unexpected, before anything is read."""
    needed = {part.name for sources in all_sources for parts in sources.values() for part in parts}
    missing = needed - stored.names
    unexpected = {
        name
        for name in stored.names - needed - set(optional)
        if not name.endswith(_RECOMPUTED_SUFFIX)
    }
    faults = [
        f"{label}: {_listed(names)}"
        for label, names in (("missing tensors", missing), ("unexpected tensors", unexpected))
        if names
    ]
    if faults:
        raise EngineError(f"{stored.folder}: {'; '.join(faults)}")


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    rest = len(ordered) - _NUM_LISTED
    return ", ".join(ordered[:_NUM_LISTED]) + (f" and {rest} more" if rest > 0 else "")


def _fill(module: nn.Module, sources: Sources, stored: StoredTensors, dtype: torch.dtype) -> None:
    """Give every parameter in `sources` its stored values."""
    for name, parts in sources.items():
        tensors = [part.read(stored, dtype) for part in parts]
        value = tensors[0] if len(tensors) == 1 else torch.cat(tensors)
        owner_name, _, attribute = name.rpartition(".")
        owner = module.get_submodule(owner_name)
        expected = list(getattr(owner, attribute).shape)
        if list(value.shape) != expected:
            stacked = " + ".join(f"{part.name}" for part in parts)
            raise EngineError(
                f"{stored.folder}: {stacked} has the shape {list(value.shape)}, but config.json "
                f"implies {expected}"
            )
        setattr(owner, attribute, nn.Parameter(value.contiguous(), requires_grad=False))


def _set_vocab_map(draft: Draft, stored: StoredTensors) -> None:
    shape = draft.shape
    if "d2t" not in stored.names:
        if shape.draft_vocab_size < shape.vocab_size:
            raise EngineError(
                f"{stored.folder}: missing tensors: d2t, which names the target's ids of the "
                f"{shape.draft_vocab_size} draft ids (of {shape.vocab_size})"
            )
        return
    offsets = stored.read("d2t", torch.int64).to(torch.int64)
    target_ids = offsets + torch.arange(len(offsets), device=offsets.device)
    if (
        len(offsets) != shape.draft_vocab_size
        or not ((target_ids >= 0) & (target_ids < shape.vocab_size)).all()
    ):
        raise EngineError(
            f"{stored.folder}: d2t must hold {shape.draft_vocab_size} offsets to ids below "
            f"{shape.vocab_size}; it holds {len(offsets)}, to ids {int(target_ids.min())} to "
            f"{int(target_ids.max())}"
        )
    draft.d2t = offsets
