"""The sizes that the loop works with, and the memory that they take."""

from specserve.checkpoint.rules import CheckedPair
from specserve.config.run import RunConfig
from specserve.errors import Problem
from specserve.facts import Machine
from specserve.plan.execution import Device
from specserve.plan.fit import pool_problems, pool_tokens, rows_problems
from specserve.plan.memory import Costs, costs, pool_memory, rows_memory, usable_bytes
from specserve.plan.notes import Notes
from specserve.plan.rows import row_slack, row_tokens
from specserve.plan.values import MemoryPlan, SchedulerPlan, SpeculationPlan, TargetPlan

KV_KEY = "scheduler.max_kv_tokens"


def plan_scheduler(
    config: RunConfig,
    machine: Machine,
    pair: CheckedPair,
    device: Device,
    target: TargetPlan,
    speculation: SpeculationPlan | None,
    notes: Notes,
) -> tuple[SchedulerPlan, MemoryPlan]:
    """Sizes and bytes; whatever does not fit into the device's memory is refused."""
    cost = costs(config, pair, target, speculation)
    usable = usable_bytes(config, machine, device)
    slack = row_slack(speculation)
    scheduler = SchedulerPlan(
        kind=config.scheduler.kind,
        device_thread=choose_device_thread(config, device, notes),
        max_running_requests=config.scheduler.max_running_requests,
        max_queued_requests=config.scheduler.max_queued_requests,
        prefill_chunk_tokens=config.scheduler.prefill_chunk_tokens,
        max_kv_tokens=choose_max_kv_tokens(config, cost, usable, target.context_length, notes),
        row_tokens=row_tokens(target.context_length, slack),
    )
    if config.engine.kind == "sglang":
        return scheduler, _fit_pool(config, cost, usable, target.context_length, scheduler, notes)
    return scheduler, _fit_rows(config, cost, usable, slack, scheduler, notes)


def choose_device_thread(config: RunConfig, device: Device, notes: Notes) -> bool:
    """Whether rounds get a thread of their own, so that the host can work meanwhile."""
    if config.scheduler.kind == "sync" or config.engine.kind != "torch":
        return False
    if device == "cpu":
        reason = (
            "on a CPU a device thread competes with the host for the cores "
            "(0.8 to 1.0 x the speed on two cores); each step is still finished one step later"
        )
        notes.adjust("scheduler.kind", "overlap", "overlap without a device thread", reason)
        return False
    return True


def choose_max_kv_tokens(
    config: RunConfig, cost: Costs, usable: int | None, context_length: int, notes: Notes
) -> int:
    """`auto`: every admitted request may fill its context; in SGLang's pool as many as fit."""
    asked = config.scheduler.max_kv_tokens
    if asked != "auto":
        notes.refuse(_budget_problems(asked, context_length))
        return asked
    full = config.scheduler.max_running_requests * context_length
    effective, reason = full, f"max_running_requests x context_length {context_length}"
    if config.engine.kind == "sglang" and usable is not None:
        fitting = max(pool_tokens(cost, usable), context_length)
        if fitting < full:
            effective = fitting
            reason = f"as many as fit beside the weights; {reason} would be {full}"
    notes.adjust(KV_KEY, "auto", effective, reason)
    return effective


def _budget_problems(asked: int, context_length: int) -> list[Problem]:
    if asked >= context_length:
        return []
    return [
        Problem(
            key=KV_KEY,
            value=asked,
            expected=f"at least {context_length}, so that one request can fill its context",
            fix=f"set {KV_KEY}={context_length}, or model.context_length={asked}",
        )
    ]


def _fit_rows(
    config: RunConfig,
    cost: Costs,
    usable: int | None,
    slack: int,
    scheduler: SchedulerPlan,
    notes: Notes,
) -> MemoryPlan:
    memory = rows_memory(
        cost, num_rows=scheduler.max_running_requests, tokens_per_row=scheduler.row_tokens
    )
    if usable is not None:
        notes.refuse(
            rows_problems(
                config,
                cost,
                memory,
                usable,
                tokens_per_row=scheduler.row_tokens,
                slack=slack,
            )
        )
    return memory


def _fit_pool(
    config: RunConfig,
    cost: Costs,
    usable: int | None,
    context_length: int,
    scheduler: SchedulerPlan,
    notes: Notes,
) -> MemoryPlan:
    if usable is not None:
        notes.refuse(
            pool_problems(
                config,
                cost,
                usable,
                context_length=context_length,
                max_kv_tokens=scheduler.max_kv_tokens,
            )
        )
    return pool_memory(cost, num_tokens=scheduler.max_kv_tokens)
