"""Which depths a policy may ever choose: what an engine must have built for it."""

from typing import assert_never

from specserve.calibration.table import Calibration
from specserve.config.policy import (
    AcceptancePolicy,
    AlwaysPolicy,
    BatchThresholdPolicy,
    Bounds,
    CostModelPolicy,
    DepthSchedulePolicy,
    OffPolicy,
    PolicyConfig,
)


def reachable_depths(
    policy: PolicyConfig, num_steps: int, calibration: Calibration | None
) -> tuple[int, ...]:
    """The depths above 0, ascending, for an engine whose deepest round is `num_steps`.

    A depth_schedule that is deeper than that says so. A cost_model can reach no more depths than
    its calibration has.
    """
    match policy:
        case OffPolicy():
            return ()
        case AlwaysPolicy() | BatchThresholdPolicy():
            return (num_steps,)
        case DepthSchedulePolicy():
            return tuple(sorted({step.num_steps for step in policy.schedule} - {0}))
        case AcceptancePolicy():
            return tuple(range(1, _deepest(policy.bounds, num_steps) + 1))
        case CostModelPolicy():
            measured = [depth.num_steps for depth in calibration.depths] if calibration else []
            deepest = _deepest(policy.bounds, num_steps)
            return tuple(steps for steps in measured if 0 < steps <= deepest)
        case _:
            assert_never(policy)


def _deepest(bounds: Bounds, num_steps: int) -> int:
    """The deepest depth that the bounds allow for some number of running decodes."""
    return min(num_steps, max((step.num_steps for step in bounds.schedule), default=num_steps))
