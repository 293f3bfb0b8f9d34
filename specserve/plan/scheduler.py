"""The sizes that the loop works with."""

from specserve.config.run import RunConfig
from specserve.errors import Problem
from specserve.plan.execution import Device
from specserve.plan.fit import pool_tokens
from specserve.plan.notes import Notes
from specserve.plan.room import Room
from specserve.plan.values import SchedulerPlan
from specserve.rule_ids import RuleId

KV_KEY = "scheduler.max_kv_tokens"


def plan_scheduler(
    config: RunConfig,
    device: Device,
    context_length: int,
    row_tokens: int,
    room: Room,
    notes: Notes,
) -> SchedulerPlan:
    """The sizes; whether they fit is told with the memory plan."""
    return SchedulerPlan(
        kind=config.scheduler.kind,
        device_thread=choose_device_thread(config, device, notes),
        max_running_requests=config.scheduler.max_running_requests,
        max_queued_requests=config.scheduler.max_queued_requests,
        prefill_chunk_tokens=config.scheduler.prefill_chunk_tokens,
        max_kv_tokens=choose_max_kv_tokens(config, room, context_length, notes),
        row_tokens=row_tokens,
    )


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


def choose_max_kv_tokens(config: RunConfig, room: Room, context_length: int, notes: Notes) -> int:
    """`auto`: every admitted request may fill its context; in SGLang's pool as many as fit."""
    asked = config.scheduler.max_kv_tokens
    if asked != "auto":
        notes.refuse(_budget_problems(asked, context_length))
        return asked
    full = config.scheduler.max_running_requests * context_length
    effective, reason = full, f"max_running_requests x context_length {context_length}"
    if config.engine.kind == "sglang" and room.usable is not None:
        fitting = max(pool_tokens(room.cost, room.usable), context_length)
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
            rule=RuleId.KV_BUDGET_BELOW_CONTEXT,
            key=KV_KEY,
            value=asked,
            expected=f"at least {context_length}, so that one request can fill its context",
            fix=f"set {KV_KEY}={context_length}, or model.context_length={asked}",
        )
    ]
