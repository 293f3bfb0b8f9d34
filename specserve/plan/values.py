"""The plan and its parts: plain frozen values, JSON-able, with every "auto" decided."""

from typing import Any, Literal

from specserve.config.policy import PolicyConfig, WhileOff
from specserve.config.strict import StrictModel


class Adjustment(StrictModel):
    """A value that differs from what the config says, or that the config left open.

    `asked` and `effective` are JSON values.
    """

    key: str
    asked: Any
    effective: Any
    reason: str


class TargetPlan(StrictModel):
    """The target as it will be loaded. `dtype` is the activation type."""

    name: str
    path: str
    config: dict[str, Any]
    architecture: Literal["llama", "mistral", "qwen2", "qwen3"] | str
    dtype: Literal["float32", "bfloat16", "float16"]
    quantization: Literal["none", "int8", "int4", "compressed_tensors_int4"]
    quantization_group_size: int | None
    num_layers: int
    hidden_size: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    context_length: int
    eos_token_ids: tuple[int, ...]
    trust_remote_code: bool


class DraftPlan(StrictModel):
    """The EAGLE-3 head as it will be loaded.

    `aux_layer_inputs` are normalised: id i is the hidden state that enters target layer i
    (0 … num_layers). `borrowed` names tensors taken from the target, by a documented rule.
    """

    path: str
    config: dict[str, Any]
    dtype: Literal["float32", "bfloat16", "float16"]
    quantization: Literal["none", "int8", "int4"]
    quantization_group_size: int | None
    aux_layer_inputs: tuple[int, ...]
    draft_vocab_size: int
    num_kv_heads: int
    head_dim: int
    borrowed: tuple[Literal["embed_tokens", "lm_head"], ...]


class SpeculationPlan(StrictModel):
    """The deepest round that will be built; a policy may choose less."""

    num_steps: int
    topk: int
    num_draft_tokens: int
    while_off: WhileOff
    draft: DraftPlan


class SchedulerPlan(StrictModel):
    """Sizes that the loop works with. A row holds one request's tokens and the verify slack.

    `device_thread`: rounds run on a thread of their own while the host finishes the step before.
    """

    kind: Literal["overlap", "sync"]
    device_thread: bool
    max_running_requests: int
    max_queued_requests: int
    prefill_chunk_tokens: int
    max_kv_tokens: int
    row_tokens: int


class MemoryPlan(StrictModel):
    """Bytes that the build will allocate on each device, counted beforehand.

    Exact for engine=torch where the tensor headers are known; else an estimate from the config.
    Activations, rotary tables and what the runtime itself takes are not in it.
    """

    target_weight_bytes: int
    draft_weight_bytes: int
    kv_bytes: int
    draft_kv_bytes: int
    feature_bytes: int

    @property
    def total_bytes(self) -> int:
        """All of it together."""
        return (
            self.target_weight_bytes
            + self.draft_weight_bytes
            + self.kv_bytes
            + self.draft_kv_bytes
            + self.feature_bytes
        )


class Plan(StrictModel):
    """Everything that the worker will ever be asked for. JSON-able: it crosses to the worker."""

    engine: Literal["torch", "sglang"]
    device: Literal["cpu", "cuda"]
    num_threads: int
    target: TargetPlan
    speculation: SpeculationPlan | None
    policy: PolicyConfig
    scheduler: SchedulerPlan
    attention: Literal["sdpa", "fa3", "triton", "flashinfer"]
    cuda_graph_batch_sizes: tuple[int, ...]
    tensor_parallel: int
    num_nodes: int
    self_test_tokens: int
    memory: MemoryPlan
    adjustments: tuple[Adjustment, ...]
    warnings: tuple[str, ...]
