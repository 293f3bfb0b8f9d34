"""RunConfig + Facts -> Plan: the one pure function in which every "auto" is decided."""

from specserve.plan.make import machine_problems, make_plan, missing_checkpoints
from specserve.plan.values import (
    Adjustment,
    DraftPlan,
    MemoryPlan,
    Plan,
    SchedulerPlan,
    SpeculationPlan,
    TargetPlan,
)

__all__ = [
    "Adjustment",
    "DraftPlan",
    "MemoryPlan",
    "Plan",
    "SchedulerPlan",
    "SpeculationPlan",
    "TargetPlan",
    "machine_problems",
    "make_plan",
    "missing_checkpoints",
]
