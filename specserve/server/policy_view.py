"""The policy as GET /v1/policy shows it: in force, the run's own, and what it may be set to."""

from collections.abc import Mapping
from typing import Any

from specserve.config.policy import CostModelPolicy
from specserve.engine import PolicyState
from specserve.plan import Plan
from specserve.server.policy_control import PolicyControl


def policy_view(state: PolicyState, control: PolicyControl, plan: Plan) -> dict[str, Any]:
    """Everything that an operator needs before a change."""
    return {
        **state_fields(state),
        "own_policy": control.own.model_dump(mode="json"),
        "pinned": control.pinned,
        "version": control.version,
        "bounds": bounds(plan),
    }


def state_fields(state: PolicyState) -> Mapping[str, Any]:
    """The policy in force, and the mode that it chose."""
    return {
        "policy": state.policy.model_dump(mode="json"),
        "mode": state.mode,
        "num_steps": state.num_steps,
        "reason": state.reason,
        "since_seconds": state.since_seconds,
        "switches": state.switches,
    }


def bounds(plan: Plan) -> dict[str, Any]:
    """What was validated and built: no change goes beyond it while the server runs."""
    speculation, policy = plan.speculation, plan.policy
    return {
        "depths": list(speculation.depths) if speculation else [],
        "while_off": _while_off(plan),
        "max_running_requests": plan.scheduler.max_running_requests,
        "calibration": policy.calibration if isinstance(policy, CostModelPolicy) else None,
    }


def _while_off(plan: Plan) -> list[str]:
    """refill needs the store of features, which is built only if the run's own policy asks."""
    if plan.speculation is None:
        return []
    return ["warm", "skip", *(["refill"] if plan.speculation.while_off == "refill" else [])]
