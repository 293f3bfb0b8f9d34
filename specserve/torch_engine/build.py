"""The build, in its order (design §5): each phase makes one value, the worker is made of all."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from specserve.config.policy import PolicyConfig
from specserve.errors import EngineError
from specserve.plan import Plan, SpeculationPlan
from specserve.torch_engine.attention_check import AttentionProof, check_attention
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.draft import Draft
from specserve.torch_engine.passes import Passes, captured_passes, computed_passes
from specserve.torch_engine.quantization import held_bytes
from specserve.torch_engine.target import Target
from specserve.torch_engine.weights import load_draft, load_target
from specserve.worker.phases import Phase, PhaseRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Everything the worker will ever be asked for, set before anything can fail."""

    device: torch.device
    num_threads: int
    policy: PolicyConfig
    num_rows: int
    row_tokens: int
    aux_layer_inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTarget:
    """The target and the tokenizer that lies beside it."""

    model: Target
    tokenizer: PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """KV memory of both models; None without a draft."""

    target: KVCache
    draft: KVCache | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchWorker:
    """A built worker of this engine; its loop is made from it."""

    plan: Plan
    attributes: Attributes
    target: LoadedTarget
    draft: Draft | None
    caches: Caches
    attention: AttentionProof
    passes: Passes


def build(plan: Plan, phases: PhaseRunner) -> TorchWorker:
    """Return the worker after the last of its phases. Raises PhaseError with the rest undone."""
    attributes = phases.run(
        Phase.ATTRIBUTES, lambda: set_attributes(plan), details=_attribute_details
    )
    target = phases.run(
        Phase.LOAD_TARGET,
        lambda: _load_target(plan, attributes),
        undo=lambda loaded: free_weights(loaded.model),
        details=lambda loaded: _target_details(plan, loaded.model),
    )
    draft = _draft_phase(plan, attributes, target.model, phases)
    caches = phases.run(
        Phase.KV_CACHE,
        lambda: allocate_caches(plan, attributes),
        undo=free_caches,
        details=lambda made: _cache_details(plan, made),
    )
    attention = phases.run(
        Phase.ATTENTION_BACKEND,
        lambda: check_attention(plan, target.model, draft, caches.target, caches.draft),
        details=lambda proof: {
            "backend": proof.backend,
            "passes": list(proof.passes),
            **_device_details(attributes.device),
        },
    )
    passes = _graphs_phase(plan, target.model, draft, caches, phases)
    return TorchWorker(
        plan=plan,
        attributes=attributes,
        target=target,
        draft=draft,
        caches=caches,
        attention=attention,
        passes=passes,
    )


def set_attributes(plan: Plan) -> Attributes:
    """Threads are set here; sizes and policy are fixed for all later phases."""
    torch.set_num_threads(plan.num_threads)
    return Attributes(
        device=torch.device(plan.device),
        num_threads=plan.num_threads,
        policy=plan.policy,
        num_rows=plan.scheduler.max_running_requests,
        row_tokens=plan.scheduler.row_tokens,
        aux_layer_inputs=plan.speculation.draft.aux_layer_inputs if plan.speculation else (),
    )


def _load_target(plan: Plan, attributes: Attributes) -> LoadedTarget:
    return LoadedTarget(
        model=load_target(plan.target, attributes.aux_layer_inputs, attributes.device),
        tokenizer=AutoTokenizer.from_pretrained(
            plan.target.path, trust_remote_code=plan.target.trust_remote_code
        ),
    )


def _draft_phase(
    plan: Plan, attributes: Attributes, target: Target, phases: PhaseRunner
) -> Draft | None:
    speculation = plan.speculation
    if speculation is None:
        phases.skip(Phase.LOAD_DRAFT, "the configuration has no draft (speculation: off)")
        return None
    return phases.run(
        Phase.LOAD_DRAFT,
        lambda: load_draft(speculation.draft, target, attributes.device),
        undo=free_weights,
        details=lambda draft: _draft_details(plan, speculation, draft, target),
    )


def allocate_caches(plan: Plan, attributes: Attributes) -> Caches:
    """Raises EngineError if the plan has counted fewer bytes than are needed."""
    draft = plan.speculation.draft if plan.speculation else None
    target = plan.target
    caches = Caches(
        target=KVCache(
            num_layers=target.num_layers,
            num_rows=attributes.num_rows,
            row_tokens=attributes.row_tokens,
            num_kv_heads=target.num_kv_heads,
            head_dim=target.head_dim,
            dtype=getattr(torch, target.dtype),
            device=attributes.device,
        ),
        draft=None
        if draft is None
        else KVCache(
            num_layers=1,
            num_rows=attributes.num_rows,
            row_tokens=attributes.row_tokens,
            num_kv_heads=draft.num_kv_heads,
            head_dim=draft.head_dim,
            dtype=getattr(torch, draft.dtype),
            device=attributes.device,
        ),
    )
    found = _cache_details(plan, caches)
    if found["kv_bytes"] > found["planned_kv_bytes"] or (
        found["draft_kv_bytes"] > found["planned_draft_kv_bytes"]
    ):
        raise EngineError(f"the caches are larger than planned: {found}")
    return caches


def _graphs_phase(
    plan: Plan, target: Target, draft: Draft | None, caches: Caches, phases: PhaseRunner
) -> Passes:
    if not plan.cuda_graph_batch_sizes:
        phases.skip(Phase.CUDA_GRAPHS, no_graphs_reason(plan))
        return computed_passes(target, draft)
    return phases.run(
        Phase.CUDA_GRAPHS,
        lambda: captured_passes(plan, target, draft, caches.target, caches.draft),
        details=lambda passes: {
            "batch_sizes": list(plan.cuda_graph_batch_sizes),
            "num_graphs": passes.num_graphs,
            **_device_details(torch.device(plan.device)),
        },
    )


def no_graphs_reason(plan: Plan) -> str:
    """Why no CUDA graph is captured."""
    if plan.device == "cpu":
        return "CUDA graphs need a GPU; this worker computes on the CPU"
    return "cuda_graph: off"


def free_weights(model: nn.Module) -> None:
    """Give every tensor of the model back, whoever still holds the model itself."""
    for module in model.modules():
        for name in [n for n, _ in module.named_parameters(recurse=False)]:
            delattr(module, name)
        for name in [n for n, _ in module.named_buffers(recurse=False)]:
            delattr(module, name)


def free_caches(caches: Caches) -> None:
    """Give the memory of both caches back, whoever still holds them."""
    for cache in (caches.target, caches.draft):
        for layer in cache.layers if cache else ():
            layer.untyped_storage().resize_(0)


def weight_bytes(model: nn.Module, *, besides: nn.Module | None = None) -> int:
    """Bytes of all parameters and buffers, each counted once, without those of `besides`."""
    own = {*model.parameters(), *model.buffers()}
    borrowed = {*besides.parameters(), *besides.buffers()} if besides else set()
    return sum(held_bytes(tensor) for tensor in own - borrowed)


def _attribute_details(attributes: Attributes) -> Mapping[str, Any]:
    return {
        "device": str(attributes.device),
        "num_threads": attributes.num_threads,
        "policy": attributes.policy.model_dump(),
        "num_rows": attributes.num_rows,
        "row_tokens": attributes.row_tokens,
        "aux_layer_inputs": list(attributes.aux_layer_inputs),
        "torch": str(torch.__version__),
        **_device_details(attributes.device),
    }


def _target_details(plan: Plan, model: Target) -> Mapping[str, Any]:
    target = plan.target
    return {
        "path": target.path,
        "architecture": target.architecture,
        "dtype": target.dtype,
        "quantization": target.quantization,
        "quantization_group_size": target.quantization_group_size,
        "weight_bytes": weight_bytes(model),
        "planned_weight_bytes": plan.memory.target_weight_bytes,
        **_device_details(torch.device(plan.device)),
    }


def _draft_details(
    plan: Plan, speculation: SpeculationPlan, model: Draft, target: Target
) -> Mapping[str, Any]:
    draft = speculation.draft
    return {
        "path": draft.path,
        "dtype": draft.dtype,
        "quantization": draft.quantization,
        "quantization_group_size": draft.quantization_group_size,
        "aux_layer_inputs": list(draft.aux_layer_inputs),
        "draft_vocab_size": draft.draft_vocab_size,
        "borrowed": list(draft.borrowed),
        "weight_bytes": weight_bytes(model, besides=target),
        "planned_weight_bytes": plan.memory.draft_weight_bytes,
        **_device_details(torch.device(plan.device)),
    }


def _cache_details(plan: Plan, caches: Caches) -> Mapping[str, Any]:
    return {
        "kv_bytes": caches.target.num_bytes,
        "planned_kv_bytes": plan.memory.kv_bytes,
        "draft_kv_bytes": caches.draft.num_bytes if caches.draft else 0,
        "planned_draft_kv_bytes": plan.memory.draft_kv_bytes,
        **_device_details(torch.device(plan.device)),
    }


def _device_details(device: torch.device) -> Mapping[str, int]:
    """What torch's allocator has taken, and all that is used on the device; nothing on a CPU.

    What is used beyond `reserved` is the runtime's, the graphs' executables and other processes'.
    """
    if device.type != "cuda":
        return {}
    free, total = torch.cuda.mem_get_info(device)
    return {
        "device_reserved_bytes": torch.cuda.memory_reserved(device),
        "device_used_bytes": total - free,
    }
