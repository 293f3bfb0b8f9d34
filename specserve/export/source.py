"""What is exported: the part of a run that says what is drafted, and when."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from specserve.config.paths import resolve_path
from specserve.config.policy import (
    AcceptancePolicy,
    AlwaysPolicy,
    BatchThresholdPolicy,
    CostModelPolicy,
    DepthSchedulePolicy,
    OffPolicy,
    PolicyConfig,
    WhileOff,
)
from specserve.config.run import RunConfig
from specserve.config.speculation import Eagle3Speculation
from specserve.errors import ConfigError, Problem
from specserve.export.ranges import DepthRange, TabularPolicy, deepest, depth_ranges
from specserve.plan.notes import Notes
from specserve.plan.speculation import choose_num_draft_tokens
from specserve.rule_ids import RuleId


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A policy with a draft. `num_draft_tokens` is what one round of the built depth verifies."""

    config: RunConfig
    speculation: Eagle3Speculation
    policy: TabularPolicy
    ranges: tuple[DepthRange, ...]
    num_draft_tokens: int

    @property
    def draft_path(self) -> str:
        """Folder on this machine, or hub id, of the draft."""
        return str(resolve_path(self.speculation.draft.path))

    @property
    def deepest(self) -> int:
        """The most draft steps that the policy ever asks for."""
        return deepest(self.ranges)

    @property
    def switches(self) -> bool:
        """False if the depth is the same at every number of running decodes."""
        return len(self.ranges) > 1

    @property
    def while_off(self) -> WhileOff | None:
        """What is asked for the draft's state while off; None if the policy never switches."""
        return None if isinstance(self.policy, AlwaysPolicy) else self.policy.while_off

    @property
    def max_running_requests(self) -> int:
        """The admission limit."""
        return self.config.scheduler.max_running_requests


def read_source(config: RunConfig, engine: str) -> Source:
    """From a valid run. Raises ConfigError if its policy is no table of depths, or never drafts."""
    if not isinstance(config.speculation, Eagle3Speculation):
        raise ConfigError([_nothing_to_export("speculation", config.speculation.kind)])
    policy = _tabular(config.policy, engine)
    return Source(
        config=config,
        speculation=config.speculation,
        policy=policy,
        ranges=depth_ranges(policy, config.speculation.num_steps),
        num_draft_tokens=choose_num_draft_tokens(config.speculation, Notes()),
    )


def plain_schedule(policy: TabularPolicy) -> Sequence[dict[str, int]]:
    """The lines of a depth_schedule as plain values; empty for the other policies."""
    lines = policy.schedule if isinstance(policy, DepthSchedulePolicy) else ()
    return [line.model_dump() for line in lines]


def _tabular(policy: PolicyConfig, engine: str) -> TabularPolicy:
    match policy:
        case AlwaysPolicy() | BatchThresholdPolicy() | DepthSchedulePolicy():
            return policy
        case OffPolicy():
            raise ConfigError([_nothing_to_export("policy", policy.kind)])
        case AcceptancePolicy():
            rule = "the acceptance of each draft position, measured live"
        case CostModelPolicy():
            rule = "measured round times and live acceptance"
        case _:
            assert_never(policy)
    raise ConfigError(
        [
            Problem(
                rule=RuleId.NOT_EXPORTABLE,
                key="policy",
                value=policy.kind,
                expected=f"always, batch_threshold or depth_schedule: nothing in the configuration "
                f"of {engine} decides by {rule}",
                fix="choose policy=depth_schedule, or policy=batch_threshold",
            )
        ]
    )


def _nothing_to_export(key: str, value: object) -> Problem:
    return Problem(
        rule=RuleId.NOTHING_TO_EXPORT,
        key=key,
        value=value,
        expected="something that an EAGLE-3 head drafts: nothing else is exported, and without "
        "speculation the other engine needs no setting",
        fix="choose speculation=eagle3_topk1 policy=batch_threshold",
    )
