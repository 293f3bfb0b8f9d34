"""PolicyConfig -> Policy."""

from typing import assert_never

from specserve.calibration.table import Calibration
from specserve.config.policy import (
    AcceptancePolicy,
    AlwaysPolicy,
    BatchThresholdPolicy,
    CostModelPolicy,
    DepthSchedulePolicy,
    OffPolicy,
    PolicyConfig,
)
from specserve.errors import ConfigError, Problem
from specserve.policy.acceptance import Acceptance
from specserve.policy.batch_threshold import BatchThreshold
from specserve.policy.cost_model import CostModel
from specserve.policy.depth_schedule import DepthSchedule
from specserve.policy.fixed import Always, Off
from specserve.policy.observation import Policy
from specserve.rule_ids import RuleId


def make_policy(
    config: PolicyConfig, max_num_steps: int, calibration: Calibration | None = None
) -> Policy:
    """A fresh policy whose depths are 0 … `max_num_steps`, the deepest round that was built.

    Raises ConfigError for a cost_model without a calibration.
    """
    match config:
        case OffPolicy():
            return Off()
        case AlwaysPolicy():
            return Always(max_num_steps)
        case BatchThresholdPolicy():
            return BatchThreshold(config, max_num_steps)
        case DepthSchedulePolicy():
            return DepthSchedule(config, max_num_steps)
        case AcceptancePolicy():
            return Acceptance(config, max_num_steps)
        case CostModelPolicy():
            if calibration is None:
                raise ConfigError([_no_calibration(config)])
            return CostModel(config, max_num_steps, calibration)
        case _:
            assert_never(config)


def _no_calibration(config: CostModelPolicy) -> Problem:
    return Problem(
        rule=RuleId.POLICY_NOT_BUILT_FOR,
        key="policy.calibration",
        value=config.calibration,
        expected="a calibration that was read, but there is none",
        fix=f"start with policy=cost_model policy.calibration={config.calibration}",
    )
