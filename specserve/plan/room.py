"""The room that a run has on each of its devices, and what its parts cost there."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from specserve.checkpoint.rules import CheckedPair
from specserve.config.run import RunConfig
from specserve.facts import Facts
from specserve.plan.cuda_graphs import batch_sizes_of
from specserve.plan.execution import Device
from specserve.plan.memory import Costs, costs, usable_bytes
from specserve.plan.memory_plan import MemoryRow
from specserve.plan.notes import Notes
from specserve.plan.packing import packed_head_bytes
from specserve.plan.reserves import devices, reserve_rows, reserved_bytes
from specserve.plan.values import SpeculationPlan, TargetPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Devices and costs. `device_bytes` and `usable` are None where no such device is known.

    `cost_at` are the costs at another degree of tensor parallelism, a divisor of `num_heads`;
    `usable_at` is what would be usable with another number of requests and tokens in a row.
    """

    device: str
    num_visible: int
    device_bytes: int | None
    usable: int | None
    reserves: tuple[MemoryRow, ...]
    cost: Costs
    cost_at: Callable[[int], Costs]
    usable_at: Callable[[int, int], int]
    num_heads: int

    @property
    def reserved(self) -> int:
        """Bytes that graphs, workspace and runtime take of each device."""
        return reserved_bytes(self.reserves)


def find_room(
    config: RunConfig,
    facts: Facts,
    pair: CheckedPair,
    device: Device,
    num_threads: int,
    target: TargetPlan,
    speculation: SpeculationPlan | None,
    row_tokens: int,
    notes: Notes,
) -> Room:
    """What there is, what is reserved of it, and what weights and tokens cost."""
    packed_head = packed_head_bytes(config, pair.size, target, device, num_threads)
    machine = facts.machine
    cost_at = partial(
        costs,
        config,
        pair,
        device,
        target,
        speculation,
        packed_head=packed_head,
        drafter=facts.draft,
    )
    cost = cost_at()
    if packed_head:
        notes.adjust(
            "memory.target_weight_bytes",
            cost.target_weights - packed_head,
            cost.target_weights,
            f"the lm_head, tied to the embedding, is held a second time: {packed_head} bytes, "
            f"packed for {num_threads} threads",
        )

    def reserves_at(num_rows: int, tokens_per_row: int) -> tuple[MemoryRow, ...]:
        return reserve_rows(
            with_requests(config, num_rows),
            machine,
            pair.size,
            target,
            speculation,
            device=device,
            batch_sizes=batch_sizes_of(config, device, num_rows),
            row_tokens=tokens_per_row,
        )

    reserves = reserves_at(config.scheduler.max_running_requests, row_tokens)
    found = list(devices(config, machine, device))
    return Room(
        device=found[0][0] if found else "a GPU that is not known",
        num_visible=len(found),
        device_bytes=min((size for _, size in found), default=None),
        usable=usable_bytes(config, machine, device, reserves),
        reserves=reserves,
        cost=cost,
        cost_at=lambda shards: cost_at(tensor_parallel=shards),
        usable_at=lambda num_rows, tokens_per_row: (
            usable_bytes(config, machine, device, reserves_at(num_rows, tokens_per_row)) or 0
        ),
        num_heads=pair.size.num_heads,
    )


def with_requests(config: RunConfig, num_rows: int) -> RunConfig:
    """The same run with another admission limit."""
    scheduler = config.scheduler.model_copy(update={"max_running_requests": num_rows})
    return config.model_copy(update={"scheduler": scheduler})
