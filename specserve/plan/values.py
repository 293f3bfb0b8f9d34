"""The plan and its parts: plain frozen values, JSON-able, with every "auto" decided."""

from typing import Any, Literal

from specserve.calibration.table import Calibration
from specserve.config.engine import SglangEngineConfig
from specserve.config.policy import PolicyConfig, WhileOff
from specserve.config.speculation import SpeculationConfig
from specserve.config.strict import StrictModel
from specserve.errors import Doubt
from specserve.plan.memory_plan import MemoryPlan


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
    quantization: Literal[
        "none", "int8", "int4", "compressed_tensors_int4", "fp8", "awq", "gptq", "nvfp4"
    ]
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
    """The EAGLE-3 head as it will be loaded; with engine=sglang any other draft model as well.

    `aux_layer_inputs` are normalised: id i is the hidden state that enters target layer i
    (0 … num_layers). `borrowed` names tensors taken from the target, by a documented rule.
    """

    path: str
    config: dict[str, Any]
    dtype: Literal["float32", "bfloat16", "float16"]
    quantization: Literal["none", "int8", "int4", "fp8"]
    quantization_group_size: int | None
    aux_layer_inputs: tuple[int, ...]
    draft_vocab_size: int
    num_kv_heads: int
    head_dim: int
    borrowed: tuple[Literal["embed_tokens", "lm_head"], ...]


class SpeculationPlan(StrictModel):
    """The deepest round that will be built; a policy may choose less.

    `depths`, ascending, are those above 0 that the worker is built for, `num_steps` among them.
    """

    num_steps: int
    depths: tuple[int, ...]
    topk: int
    num_draft_tokens: int
    while_off: WhileOff
    draft: DraftPlan


class SglangPlan(StrictModel):
    """What engine=sglang is asked for beyond the rest of the plan.

    `stored_quantized`: the target's checkpoint says itself how it is quantized. `log_level` and
    `step_limit_seconds` are those of the run.
    """

    engine: SglangEngineConfig
    speculation: SpeculationConfig
    stored_quantized: bool
    log_level: Literal["debug", "info", "warning", "error"]
    step_limit_seconds: float


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


class Plan(StrictModel):
    """Everything that the worker will ever be asked for. JSON-able: it crosses to the worker."""

    engine: Literal["torch", "sglang"]
    device: Literal["cpu", "cuda"]
    num_threads: int
    target: TargetPlan
    speculation: SpeculationPlan | None
    policy: PolicyConfig
    calibration: Calibration | None
    scheduler: SchedulerPlan
    attention: Literal["sdpa", "fa3", "triton", "flashinfer", "intel_amx"]
    cuda_graph_batch_sizes: tuple[int, ...]
    tensor_parallel: int
    num_nodes: int
    self_test_tokens: int
    memory: MemoryPlan
    sglang: SglangPlan | None = None
    adjustments: tuple[Adjustment, ...]
    warnings: tuple[Doubt, ...]
