"""What a worker was built for, and which policies it therefore refuses while it runs."""

from collections.abc import Iterator
from dataclasses import dataclass

from specserve.calibration.table import Calibration
from specserve.config.policy import (
    CostModelPolicy,
    OffPolicy,
    PolicyConfig,
    SwitchingPolicy,
    WhileOff,
)
from specserve.config.policy_rules import depth_problems, value_problems
from specserve.errors import ConfigError, Problem
from specserve.plan import SpeculationPlan
from specserve.policy.reach import reachable_depths
from specserve.rule_ids import RuleId


@dataclass(frozen=True, slots=True)
class Built:
    """The draft, if any, and the calibration that was read, with the path it was read from."""

    speculation: SpeculationPlan | None
    calibration: Calibration | None
    calibration_path: str | None

    @property
    def num_steps(self) -> int:
        """The deepest round."""
        return self.speculation.num_steps if self.speculation else 0

    @property
    def while_off(self) -> WhileOff:
        """What a policy that declares nothing gets."""
        return self.speculation.while_off if self.speculation else "skip"


def refuse_unbuilt(policy: PolicyConfig, built: Built) -> None:
    """Raises ConfigError with all that `policy` wants and `built` does not have."""
    if isinstance(policy, OffPolicy):
        return
    if built.speculation is None:
        raise ConfigError([_no_draft(policy.kind)])
    problems = [*value_problems(policy), *depth_problems(policy, built.num_steps)]
    problems += _unbuilt(policy, built, built.speculation)
    if problems:
        raise ConfigError(problems)


def _unbuilt(policy: PolicyConfig, built: Built, speculation: SpeculationPlan) -> Iterator[Problem]:
    if isinstance(policy, SwitchingPolicy) and policy.while_off == "refill" != built.while_off:
        yield _no_store(built.while_off)
    if isinstance(policy, CostModelPolicy) and policy.calibration != built.calibration_path:
        yield _other_calibration(policy.calibration, built.calibration_path)
        return
    depths = reachable_depths(policy, speculation.num_steps, built.calibration)
    missing = [k for k in depths if k <= speculation.num_steps and k not in speculation.depths]
    if missing:
        yield _no_graphs(policy, missing, speculation.depths)


def _no_draft(kind: str) -> Problem:
    return Problem(
        rule=RuleId.POLICY_NOT_BUILT_FOR,
        key="policy",
        value=kind,
        expected="off, because no draft was built (speculation=off)",
        fix="set policy=off, or start with speculation=eagle3_topk1",
    )


def _no_store(built: WhileOff) -> Problem:
    return Problem(
        rule=RuleId.POLICY_NOT_BUILT_FOR,
        key="policy.while_off",
        value="refill",
        expected=f"warm or skip: built for {built}, without the features store of refill",
        fix="set policy.while_off=warm, or start with policy.while_off=refill",
    )


def _other_calibration(asked: str, own: str | None) -> Problem:
    start = f"start with policy=cost_model policy.calibration={asked}"
    if own is None:
        expected = "another policy: this run was started without a calibration"
        return Problem(
            rule=RuleId.POLICY_NOT_BUILT_FOR,
            key="policy.calibration",
            value=asked,
            expected=expected,
            fix=start,
        )
    return Problem(
        rule=RuleId.POLICY_NOT_BUILT_FOR,
        key="policy.calibration",
        value=asked,
        expected=f"{own}, the calibration that this run was started with",
        fix=f"set policy.calibration={own}, or {start}",
    )


def _no_graphs(policy: PolicyConfig, missing: list[int], built: tuple[int, ...]) -> Problem:
    return Problem(
        rule=RuleId.POLICY_NOT_BUILT_FOR,
        key="policy",
        value=policy.kind,
        expected=f"a policy of the depths {list(built)}, for which CUDA graphs were captured; this "
        f"one can also choose {missing}",
        fix=f"start with policy={policy.kind}, or with cuda_graph=off",
    )
