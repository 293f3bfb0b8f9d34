"""What works but probably is not meant: settings without effect, an open door."""

import ipaddress
from collections.abc import Iterator
from itertools import pairwise
from typing import assert_never

from specserve.config.policy import (
    AcceptancePolicy,
    AlwaysPolicy,
    BatchThresholdPolicy,
    CostModelPolicy,
    DepthSchedulePolicy,
    OffPolicy,
    PolicyConfig,
)
from specserve.config.policy_rules import depth_tables
from specserve.config.run import RunConfig
from specserve.config.speculation import NoSpeculation
from specserve.errors import Doubt
from specserve.rule_ids import RuleId


def config_warnings(config: RunConfig) -> tuple[Doubt, ...]:
    """One for each doubt; empty when there is none."""
    return (
        *_threshold_never_acts(config),
        *_line_never_counts(config),
        *_draft_never_used(config),
        *_open_to_the_network(config),
        *_remote_code(config),
        *_graph_sizes_unused(config),
    )


def _threshold_never_acts(config: RunConfig) -> Iterator[Doubt]:
    limit = config.scheduler.max_running_requests
    for key, most in _thresholds(config.policy):
        if most >= limit:
            yield Doubt(
                rule=RuleId.THRESHOLD_NEVER_ACTS,
                key=key,
                text=f"{key}={most} never acts: "
                f"scheduler.max_running_requests={limit} admits no more than that",
            )


def _thresholds(policy: PolicyConfig) -> Iterator[tuple[str, int]]:
    """Running decodes above which the policy was meant to stop speculating."""
    match policy:
        case BatchThresholdPolicy():
            yield "policy.disable_above", policy.disable_above
        case AcceptancePolicy() | CostModelPolicy():
            if policy.bounds.disable_above is not None:
                yield "policy.bounds.disable_above", policy.bounds.disable_above
        case DepthSchedulePolicy() | OffPolicy() | AlwaysPolicy():
            return
        case _:
            assert_never(policy)


def _line_never_counts(config: RunConfig) -> Iterator[Doubt]:
    """A line of a table of depths counts from the end of the line before it."""
    limit = config.scheduler.max_running_requests
    for key, table in depth_tables(config.policy).items():
        for before, line in pairwise(table):
            if before.up_to >= limit:
                yield Doubt(
                    rule=RuleId.THRESHOLD_NEVER_ACTS,
                    key=key,
                    text=f"{key}: the line up_to={line.up_to} never acts: it counts above "
                    f"{before.up_to}, and scheduler.max_running_requests={limit} admits no more",
                )


def _draft_never_used(config: RunConfig) -> Iterator[Doubt]:
    if isinstance(config.policy, OffPolicy) and not isinstance(config.speculation, NoSpeculation):
        yield Doubt(
            rule=RuleId.DRAFT_NEVER_USED,
            key="policy",
            text=f"speculation={config.speculation.kind} with policy=off: "
            "the draft is loaded and stays unused until the policy is changed",
        )


def _open_to_the_network(config: RunConfig) -> Iterator[Doubt]:
    if config.server.api_key is None and not _is_loopback(config.server.host):
        yield Doubt(
            rule=RuleId.OPEN_TO_THE_NETWORK,
            key="server.host",
            text=f"server.host={config.server.host} without server.api_key: "
            "whoever reaches this machine can use the server",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return host == "localhost"


def _remote_code(config: RunConfig) -> Iterator[Doubt]:
    if config.model.trust_remote_code:
        yield Doubt(
            rule=RuleId.REMOTE_CODE,
            key="model.trust_remote_code",
            text="model.trust_remote_code=True: Python code that the checkpoint brings runs here, "
            "with the rights of this user",
        )


def _graph_sizes_unused(config: RunConfig) -> Iterator[Doubt]:
    if config.cuda_graph.kind == "off" and config.cuda_graph.batch_sizes != "auto":
        yield Doubt(
            rule=RuleId.GRAPH_SIZES_UNUSED,
            key="cuda_graph.batch_sizes",
            text="cuda_graph.batch_sizes has no effect: cuda_graph.kind is off",
        )
