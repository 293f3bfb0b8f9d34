"""RunConfig + Facts -> Plan: the one pure function in which every "auto" is decided."""

from specserve.plan.make import machine_problems, make_plan, missing_checkpoints
from specserve.plan.memory_plan import MemoryPlan, MemoryRow
from specserve.plan.memory_table import memory_table
from specserve.plan.values import (
    Adjustment,
    DraftPlan,
    Plan,
    SchedulerPlan,
    SglangPlan,
    SpeculationPlan,
    TargetPlan,
)

__all__ = [
    "Adjustment",
    "DraftPlan",
    "MemoryPlan",
    "MemoryRow",
    "Plan",
    "SchedulerPlan",
    "SglangPlan",
    "SpeculationPlan",
    "TargetPlan",
    "machine_problems",
    "make_plan",
    "memory_table",
    "missing_checkpoints",
]
