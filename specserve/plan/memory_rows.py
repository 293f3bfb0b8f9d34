"""The memory plan, made: what is allocated is refused if it does not fit, and told row by row."""

from collections.abc import Iterator

from specserve.checkpoint.rules import CheckedPair
from specserve.config.run import RunConfig
from specserve.plan.execution import Device
from specserve.plan.fit import pool_problems, pool_tokens, rows_problems
from specserve.plan.mapped import mapped_file_bytes
from specserve.plan.memory import Allocation, pool_memory, rows_memory
from specserve.plan.memory_plan import Knowledge, MemoryPart, MemoryPlan, MemoryRow
from specserve.plan.notes import Notes
from specserve.plan.room import Room
from specserve.plan.values import SchedulerPlan, SpeculationPlan, TargetPlan


def plan_memory(
    config: RunConfig,
    pair: CheckedPair,
    device: Device,
    target: TargetPlan,
    speculation: SpeculationPlan | None,
    scheduler: SchedulerPlan,
    room: Room,
    notes: Notes,
) -> MemoryPlan:
    """Every row; what does not fit into the room is refused, with what would fit."""
    maps_files = device == "cpu" and config.engine.kind == "torch"
    allocation = _fitted(config, target, scheduler, room, notes)
    rows = [
        *_allocated_rows(config, pair, scheduler, allocation),
        *room.reserves,
        *(_mapped_rows(pair, target, speculation) if maps_files else ()),
    ]
    return MemoryPlan(
        device=room.device,
        num_devices=config.parallel.tensor_parallel,
        device_bytes=room.device_bytes,
        usable_bytes=room.usable,
        kv_bytes_per_token=room.cost.kv_per_token,
        draft_kv_bytes_per_token=room.cost.draft_kv_per_token,
        fitting_tokens=None if room.usable is None else pool_tokens(room.cost, room.usable),
        rows=tuple(row for row in rows if row.num_bytes),
    )


def _fitted(
    config: RunConfig, target: TargetPlan, scheduler: SchedulerPlan, room: Room, notes: Notes
) -> Allocation:
    if config.engine.kind == "sglang":
        notes.refuse(
            pool_problems(
                config,
                room,
                context_length=target.context_length,
                max_kv_tokens=scheduler.max_kv_tokens,
            )
        )
        return pool_memory(room.cost, num_tokens=scheduler.max_kv_tokens)
    allocation = rows_memory(
        room.cost, num_rows=scheduler.max_running_requests, tokens_per_row=scheduler.row_tokens
    )
    notes.refuse(
        rows_problems(
            config,
            room,
            allocation,
            tokens_per_row=scheduler.row_tokens,
            slack=scheduler.row_tokens - target.context_length,
        )
    )
    return allocation


def _allocated_rows(
    config: RunConfig, pair: CheckedPair, scheduler: SchedulerPlan, allocation: Allocation
) -> Iterator[MemoryRow]:
    draft = pair.draft.facts if pair.draft else None
    bases: dict[MemoryPart, tuple[Knowledge, str]] = {
        "target_weights": _weights_basis(pair.target.tensors is not None),
        "draft_weights": _weights_basis(draft is not None and draft.tensors is not None),
    }
    slots = (
        f"a pool of {scheduler.max_kv_tokens} tokens"
        if config.engine.kind == "sglang"
        else f"{scheduler.max_running_requests} rows of {scheduler.row_tokens} tokens"
    )
    for what, size in allocation.parts.items():
        known, basis = bases.get(what, ("counted", slots))
        yield MemoryRow(what=what, num_bytes=size, known=known, basis=basis)


def _weights_basis(has_headers: bool) -> tuple[Knowledge, str]:
    if has_headers:
        return "counted", "the tensors in the headers of its files"
    return "estimated", "the dimensions in its config.json; its files are not here"


def _mapped_rows(
    pair: CheckedPair, target: TargetPlan, speculation: SpeculationPlan | None
) -> Iterator[MemoryRow]:
    size = mapped_file_bytes(pair.target, target.dtype, target.quantization)
    if pair.draft is not None and speculation is not None:
        draft = speculation.draft
        size += mapped_file_bytes(pair.draft.facts, draft.dtype, draft.quantization)
    yield MemoryRow(
        what="mapped_files",
        num_bytes=size,
        known="counted",
        basis="pages of the checkpoints' files that stay mapped; the system can drop them",
    )
