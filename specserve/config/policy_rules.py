"""Rules for the values of a policy: for a configuration, and for a change at run time."""

from collections.abc import Iterator, Mapping
from typing import assert_never

from specserve.config.policy import (
    AcceptancePolicy,
    AlwaysPolicy,
    BatchThresholdPolicy,
    CostModelPolicy,
    DepthSchedulePolicy,
    DepthStep,
    DepthTable,
    OffPolicy,
    PolicyConfig,
)
from specserve.config.quote import shell_override
from specserve.errors import Problem
from specserve.rule_ids import RuleId


def value_problems(policy: PolicyConfig) -> Iterator[Problem]:
    """What contradicts itself, whatever was built."""
    for key, table in depth_tables(policy).items():
        yield from _not_increasing(key, table)
        yield from _never_speculates(key, table)
    match policy:
        case BatchThresholdPolicy():
            yield from _resumes_too_late(policy)
        case DepthSchedulePolicy():
            yield from _never_returns(policy)
        case AcceptancePolicy():
            yield from _never_clears(policy)
        case OffPolicy() | AlwaysPolicy() | CostModelPolicy():
            return
        case _:
            assert_never(policy)


def depth_problems(policy: PolicyConfig, num_steps: int) -> Iterator[Problem]:
    """Depths beyond `num_steps`, the deepest round that is built."""
    for key, table in depth_tables(policy).items():
        deepest = max((step.num_steps for step in table), default=0)
        if deepest > num_steps:
            clipped = [
                DepthStep(up_to=step.up_to, num_steps=min(step.num_steps, num_steps))
                for step in _increasing(table)
            ]
            yield Problem(
                rule=RuleId.DEEPER_THAN_BUILT,
                key=key,
                value=_plain(table),
                expected=f"num_steps of at most {num_steps}, the deepest round that is built "
                "(speculation.num_steps)",
                fix=f"set {_override(key, clipped)}, or speculation.num_steps={deepest}",
            )


def depth_tables(policy: PolicyConfig) -> Mapping[str, DepthTable]:
    """The tables of depths that a policy has, by key."""
    match policy:
        case DepthSchedulePolicy():
            return {"policy.schedule": policy.schedule}
        case AcceptancePolicy() | CostModelPolicy():
            return {"policy.bounds.schedule": policy.bounds.schedule}
        case OffPolicy() | AlwaysPolicy() | BatchThresholdPolicy():
            return {}
        case _:
            assert_never(policy)


def _not_increasing(key: str, table: DepthTable) -> Iterator[Problem]:
    ordered = _increasing(table)
    if table != ordered:
        yield Problem(
            rule=RuleId.TABLE_UNSORTED,
            key=key,
            value=_plain(table),
            expected="lines in increasing order of up_to, without repeats",
            fix=f"set {_override(key, ordered)}",
        )


def _never_speculates(key: str, table: DepthTable) -> Iterator[Problem]:
    if table and not any(step.num_steps for step in table):
        yield Problem(
            rule=RuleId.TABLE_NEVER_SPECULATES,
            key=key,
            value=_plain(table),
            expected="a line with num_steps of at least 1, for so it never speculates",
            fix="choose policy=off",
        )


def _resumes_too_late(policy: BatchThresholdPolicy) -> Iterator[Problem]:
    """Hysteresis: speculation comes back at the threshold or below it."""
    if policy.resume_at > policy.disable_above:
        yield Problem(
            rule=RuleId.RESUMES_ABOVE_THRESHOLD,
            key="policy.resume_at",
            value=policy.resume_at,
            expected=f"at most policy.disable_above, {policy.disable_above}",
            fix=f"set policy.resume_at={policy.disable_above}, "
            f"or policy.disable_above={policy.resume_at}",
        )


def _never_returns(policy: DepthSchedulePolicy) -> Iterator[Problem]:
    """The first line's depth returns at up_to - hysteresis, which must be a number of requests."""
    first = _increasing(policy.schedule)[0].up_to
    if policy.hysteresis > first:
        yield Problem(
            rule=RuleId.DEPTH_NEVER_RETURNS,
            key="policy.hysteresis",
            value=policy.hysteresis,
            expected=f"at most {first}, the schedule's first up_to, whose depth else never returns",
            fix=f"set policy.hysteresis={first}",
        )


def _never_clears(policy: AcceptancePolicy) -> Iterator[Problem]:
    most = 1 - policy.min_acceptance
    if policy.margin > most:
        yield Problem(
            rule=RuleId.DEPTH_NEVER_CLEARS,
            key="policy.margin",
            value=policy.margin,
            expected=f"at most {most:g} (1 - min_acceptance), or no deeper depth is ever taken",
            fix=f"set policy.margin={most / 2:g}",
        )


def _increasing(table: DepthTable) -> DepthTable:
    """Sorted by `up_to`; of lines with the same one, the first."""
    lines = {step.up_to: step for step in reversed(table)}
    return [lines[up_to] for up_to in sorted(lines)]


def _override(key: str, table: DepthTable) -> str:
    return shell_override(key, _plain(table))


def _plain(table: DepthTable) -> list[dict[str, int]]:
    return [step.model_dump() for step in table]
