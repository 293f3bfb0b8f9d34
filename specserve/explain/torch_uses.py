"""What the embedded engine makes of each key: a field of the plan, and the phase that reads it."""

from collections.abc import Mapping
from dataclasses import dataclass

ATTRIBUTES = "phase attributes"
LOAD_TARGET = "phase load_target"
LOAD_DRAFT = "phase load_draft"
KV_CACHE = "phase kv_cache"
ATTENTION = "phase attention_backend"
GRAPHS = "phase cuda_graphs"
SELF_TEST = "phase self_test"
LOOP = "the loop"
SUPERVISOR = "the supervisor"
HTTP = "the HTTP server"
PLANNING = "the planning"


@dataclass(frozen=True, slots=True)
class Use:
    """Who reads the value, and where in the plan it stands (None: it is read from the config)."""

    reader: str
    plan_field: str | None = None

    def __str__(self) -> str:
        return self.reader if self.plan_field is None else f"{self.reader}: {self.plan_field}"


# A section stands for all keys below it that have no line of their own.
_USES: Mapping[str, Use] = {
    "model.name": Use(HTTP, "target.name"),
    "model.path": Use(LOAD_TARGET, "target.path"),
    "model.draft_path": Use("the key that refers to it"),
    "model.dtype": Use(LOAD_TARGET, "target.dtype"),
    "model.context_length": Use(KV_CACHE, "target.context_length"),
    "model.trust_remote_code": Use(LOAD_TARGET, "target.trust_remote_code"),
    "quantization.kind": Use(LOAD_TARGET, "target.quantization"),
    "quantization.group_size": Use(LOAD_TARGET, "target.quantization_group_size"),
    "quantization.draft": Use(LOAD_DRAFT, "speculation.draft.quantization"),
    "speculation.kind": Use(LOAD_DRAFT, "speculation"),
    "speculation.draft.path": Use(LOAD_DRAFT, "speculation.draft.path"),
    "speculation.draft.aux_layer_ids": Use(ATTRIBUTES, "speculation.draft.aux_layer_inputs"),
    "speculation.draft.aux_layer_convention": Use(ATTRIBUTES, "speculation.draft.aux_layer_inputs"),
    "speculation.num_steps": Use(ATTRIBUTES, "speculation.num_steps"),
    "speculation.topk": Use(ATTRIBUTES, "speculation.topk"),
    "speculation.num_draft_tokens": Use(ATTRIBUTES, "speculation.num_draft_tokens"),
    "policy": Use(ATTRIBUTES, "policy"),
    "policy.calibration": Use(ATTRIBUTES, "calibration"),
    "policy.while_off": Use(KV_CACHE, "speculation.while_off"),
    "scheduler.kind": Use(LOOP, "scheduler.kind"),
    "scheduler.max_running_requests": Use(KV_CACHE, "scheduler.max_running_requests"),
    "scheduler.max_queued_requests": Use(LOOP, "scheduler.max_queued_requests"),
    "scheduler.prefill_chunk_tokens": Use(LOOP, "scheduler.prefill_chunk_tokens"),
    "scheduler.max_kv_tokens": Use(LOOP, "scheduler.max_kv_tokens"),
    "scheduler.step_limit_seconds": Use(SUPERVISOR),
    "attention.kind": Use(ATTENTION, "attention"),
    "cuda_graph": Use(GRAPHS, "cuda_graph_batch_sizes"),
    "parallel.tensor_parallel": Use(PLANNING, "tensor_parallel"),
    "parallel.num_nodes": Use(PLANNING, "num_nodes"),
    "engine.kind": Use(SUPERVISOR, "engine"),
    "engine.device": Use(ATTRIBUTES, "device"),
    "engine.num_threads": Use(ATTRIBUTES, "num_threads"),
    "build.limit_seconds": Use(SUPERVISOR),
    "build.self_test_tokens": Use(SELF_TEST, "self_test_tokens"),
    "server": Use(HTTP),
    "logging": Use(SUPERVISOR),
    "task.kind": Use("the command line"),
}


def torch_use(key: str) -> Use | None:
    """The use of `key`; None if engine=torch never reads it."""
    while key and key not in _USES:
        key = key.rpartition(".")[0]
    return _USES.get(key)
