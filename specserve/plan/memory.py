"""The memory plan: what is allocated, whether it fits, and the smallest change that makes it fit.

engine=torch holds `max_running_requests` rows of `row_tokens` slots. SGLang holds one pool of
`max_kv_tokens` slots, and its feature buffers are its own affair.
"""

from dataclasses import dataclass, replace

from specserve.checkpoint.architecture import Dimensions
from specserve.checkpoint.dtype import DTYPE_BYTES
from specserve.checkpoint.rules import CheckedPair
from specserve.config.engine import SglangEngineConfig
from specserve.config.run import RunConfig
from specserve.facts import Machine
from specserve.plan.execution import Device, gpus_per_node
from specserve.plan.values import MemoryPlan, SpeculationPlan, TargetPlan
from specserve.plan.weights import draft_weight_bytes, target_weight_bytes

# Of a device's memory; the rest is for activations, the runtime and other processes.
USABLE_SHARE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What a plan's sizes are multiplied with. Bytes on one device.

    `ring_tokens` is the feature store's length in each row; None means that the whole row is kept.
    """

    target_weights: int
    draft_weights: int
    kv_per_token: int
    draft_kv_per_token: int
    features_per_token: int
    ring_tokens: int | None

    @property
    def weights(self) -> int:
        """Target and draft."""
        return self.target_weights + self.draft_weights

    @property
    def both_kv_per_token(self) -> int:
        """Target and draft."""
        return self.kv_per_token + self.draft_kv_per_token


def costs(
    config: RunConfig, pair: CheckedPair, target: TargetPlan, speculation: SpeculationPlan | None
) -> Costs:
    """Count what the plan's parts cost."""
    dtype_bytes = DTYPE_BYTES[target.dtype]
    shards = config.parallel.tensor_parallel
    without_draft = Costs(
        target_weights=target_weight_bytes(pair, target, shards),
        draft_weights=0,
        kv_per_token=pair.size.num_layers * _shard_kv_width(pair.size, shards) * dtype_bytes,
        draft_kv_per_token=0,
        features_per_token=0,
        ring_tokens=0,
    )
    if speculation is None or pair.draft is None:
        return without_draft
    draft = speculation.draft
    features = len(draft.aux_layer_inputs) * pair.size.hidden_size * dtype_bytes
    return replace(
        without_draft,
        draft_weights=draft_weight_bytes(pair, pair.draft, draft, shards),
        draft_kv_per_token=_shard_kv_width(pair.draft.shape.size, shards) * dtype_bytes,
        features_per_token=0 if config.engine.kind == "sglang" else features,
        ring_tokens=None if speculation.while_off == "refill" else speculation.num_steps + 2,
    )


def rows_memory(cost: Costs, *, num_rows: int, tokens_per_row: int) -> MemoryPlan:
    """What engine=torch allocates."""
    ring = tokens_per_row if cost.ring_tokens is None else cost.ring_tokens
    return MemoryPlan(
        target_weight_bytes=cost.target_weights,
        draft_weight_bytes=cost.draft_weights,
        kv_bytes=num_rows * tokens_per_row * cost.kv_per_token,
        draft_kv_bytes=num_rows * tokens_per_row * cost.draft_kv_per_token,
        feature_bytes=num_rows * ring * cost.features_per_token,
    )


def pool_memory(cost: Costs, *, num_tokens: int) -> MemoryPlan:
    """What SGLang allocates."""
    return MemoryPlan(
        target_weight_bytes=cost.target_weights,
        draft_weight_bytes=cost.draft_weights,
        kv_bytes=num_tokens * cost.kv_per_token,
        draft_kv_bytes=num_tokens * cost.draft_kv_per_token,
        feature_bytes=0,
    )


def usable_bytes(config: RunConfig, machine: Machine, device: Device) -> int | None:
    """Memory that a plan may take on one device; None where no such device is known."""
    if device == "cpu":
        return int(machine.memory_bytes * USABLE_SHARE)
    share = USABLE_SHARE
    if isinstance(config.engine, SglangEngineConfig) and config.engine.memory_fraction != "auto":
        share = config.engine.memory_fraction
    gpus = machine.gpus[: gpus_per_node(config)]
    return int(min(gpu.memory_bytes for gpu in gpus) * share) if gpus else None


def largest_num_rows(cost: Costs, usable: int, *, tokens_per_row: int) -> int:
    """Rows that fit beside the weights; 0 if none does."""
    each = rows_memory(cost, num_rows=1, tokens_per_row=tokens_per_row).total_bytes - cost.weights
    return max(0, (usable - cost.weights) // each)


def largest_context(cost: Costs, usable: int, *, num_rows: int, slack: int) -> int:
    """The largest context for which `num_rows` rows fit beside the weights; 0 if none does.

    `slack` is what a row has beyond the context.
    """
    per_token = num_rows * cost.both_kv_per_token
    left = usable - cost.weights
    if cost.ring_tokens is None:
        per_token += num_rows * cost.features_per_token
    else:
        left -= num_rows * cost.ring_tokens * cost.features_per_token
    rounded = max(0, left // per_token) // 8 * 8
    return max(0, rounded - slack)


def _shard_kv_width(size: Dimensions, shards: int) -> int:
    """Numbers a token leaves in one layer of one device: heads are shared out, MLA's vector not."""
    if size.mla:
        return size.kv_width
    return -(-size.num_kv_heads // shards) * 2 * size.head_dim
