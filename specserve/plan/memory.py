"""What the build allocates on a device, and how much it may.

engine=torch holds `max_running_requests` rows of `row_tokens` slots. SGLang holds one pool of
`max_kv_tokens` slots, and its feature buffers are its own affair.
"""

from dataclasses import dataclass, replace

from specserve.checkpoint.architecture import Dimensions
from specserve.checkpoint.dtype import DTYPE_BYTES
from specserve.checkpoint.header import CheckpointFacts
from specserve.checkpoint.rules import CheckedPair
from specserve.config.engine import SglangEngineConfig
from specserve.config.run import RunConfig
from specserve.facts import Machine
from specserve.plan.drafter_costs import drafter_size, drafter_weight_bytes
from specserve.plan.execution import Device
from specserve.plan.memory_plan import MemoryPart, MemoryRow
from specserve.plan.reserves import devices, reserved_bytes
from specserve.plan.values import SpeculationPlan, TargetPlan
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Bytes that the build allocates on one device."""

    target_weights: int
    draft_weights: int
    kv: int
    draft_kv: int
    features: int

    @property
    def total(self) -> int:
        """All of it together."""
        return sum(self.parts.values())

    @property
    def parts(self) -> dict[MemoryPart, int]:
        """By part, in the order in which they are shown."""
        return {
            "target_weights": self.target_weights,
            "draft_weights": self.draft_weights,
            "kv": self.kv,
            "draft_kv": self.draft_kv,
            "features": self.features,
        }


def costs(
    config: RunConfig,
    pair: CheckedPair,
    device: Device,
    target: TargetPlan,
    speculation: SpeculationPlan | None,
    *,
    packed_head: int,
    drafter: CheckpointFacts | None = None,
    tensor_parallel: int | None = None,
) -> Costs:
    """Count what the plan's parts cost; `packed_head` is the target's second lm_head, in bytes.

    `drafter` is what lies at the path of a draft model that is no EAGLE-3 head. `tensor_parallel`
    None takes the configuration's.
    """
    dtype_bytes, kv_bytes = DTYPE_BYTES[target.dtype], kv_number_bytes(config, target)
    shards = tensor_parallel or config.parallel.tensor_parallel
    without_draft = Costs(
        target_weights=target_weight_bytes(pair, target, shards, device) + packed_head,
        draft_weights=0,
        kv_per_token=pair.size.num_layers * _shard_kv_width(pair.size, shards) * kv_bytes,
        draft_kv_per_token=0,
        features_per_token=0,
        ring_tokens=0,
    )
    if speculation is None:
        return without_draft
    draft = speculation.draft
    if pair.draft is None:
        size = drafter_size(config, draft, pair.target)
        weights = drafter_weight_bytes(config, draft, drafter, size, shards, device)
        per_token = size.num_layers * _shard_kv_width(size, shards) * kv_bytes
        return replace(without_draft, draft_weights=weights, draft_kv_per_token=per_token)
    features = len(draft.aux_layer_inputs) * pair.size.hidden_size * dtype_bytes
    return replace(
        without_draft,
        draft_weights=draft_weight_bytes(pair, pair.draft, draft, shards, device),
        draft_kv_per_token=_shard_kv_width(pair.draft.shape.size, shards) * kv_bytes,
        features_per_token=0 if config.engine.kind == "sglang" else features,
        ring_tokens=None if speculation.while_off == "refill" else speculation.num_steps + 2,
    )


def rows_memory(cost: Costs, *, num_rows: int, tokens_per_row: int) -> Allocation:
    """What engine=torch allocates."""
    ring = tokens_per_row if cost.ring_tokens is None else cost.ring_tokens
    return Allocation(
        target_weights=cost.target_weights,
        draft_weights=cost.draft_weights,
        kv=num_rows * tokens_per_row * cost.kv_per_token,
        draft_kv=num_rows * tokens_per_row * cost.draft_kv_per_token,
        features=num_rows * ring * cost.features_per_token,
    )


def pool_memory(cost: Costs, *, num_tokens: int) -> Allocation:
    """What SGLang allocates."""
    return Allocation(
        target_weights=cost.target_weights,
        draft_weights=cost.draft_weights,
        kv=num_tokens * cost.kv_per_token,
        draft_kv=num_tokens * cost.draft_kv_per_token,
        features=0,
    )


def usable_bytes(
    config: RunConfig, machine: Machine, device: Device, reserves: tuple[MemoryRow, ...]
) -> int | None:
    """Memory that may be allocated on one device; None where no such device is known.

    A share of what there is, or what the reserves leave of it if that is less.
    """
    share = USABLE_SHARE
    if isinstance(config.engine, SglangEngineConfig) and config.engine.memory_fraction != "auto":
        share = config.engine.memory_fraction
    sizes = [size for _, size in devices(config, machine, device)]
    if not sizes:
        return None
    least = min(sizes)
    return max(0, min(int(least * share), least - reserved_bytes(reserves)))


def kv_number_bytes(config: RunConfig, target: TargetPlan) -> int:
    """Bytes of one number in the cache: the activation type's, unless SGLang is told another."""
    asked = (
        config.engine.kv_cache_dtype if isinstance(config.engine, SglangEngineConfig) else "auto"
    )
    return 1 if asked.startswith("fp8") else 2 if asked == "bfloat16" else DTYPE_BYTES[target.dtype]


def _shard_kv_width(size: Dimensions, shards: int) -> int:
    """Numbers a token leaves in one layer of one device: heads are shared out, MLA's vector not."""
    if size.mla:
        return size.kv_width
    return -(-size.num_kv_heads // shards) * 2 * size.head_dim
