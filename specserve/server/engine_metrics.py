"""EngineStats and lifecycle -> Prometheus metrics. Raw counters stand beside every derived one."""

import re
from collections.abc import Iterator, Mapping
from typing import get_args

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)

from specserve.engine import EngineStats, Mode
from specserve.server.policy_change import PinnedTo

_COUNTERS: Mapping[str, str] = {
    "drafted": "Draft tokens verified",
    "accepted": "Draft tokens kept",
    "emitted": "Tokens that requests got",
    "verify_rounds": "Verifications, one a request and round",
    "plain_steps": "Plain decode steps, one a request and round",
    "draft_calls": "Draft forward passes that propose",
    "draft_upkeep_calls": "Draft forward passes that only keep the draft's state",
    "verify_calls": "Target forward passes that verify",
    "prefill_tokens": "Prompt tokens computed",
}
_GAUGES: Mapping[str, str] = {
    "running": "Requests that hold KV slots, prefill included",
    "running_decodes": "Requests in decode",
    "queued": "Requests that wait",
    "free_slots": "KV slots that no running request has reserved, in tokens",
    "total_slots": "KV budget, in tokens",
}
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d.]*(?:e[-+]?\d+)?")


def lifecycle_metrics(status: str, *, worker_up: bool) -> Iterator[Metric]:
    """What is known without the worker."""
    state = GaugeMetricFamily("specserve_status", "Lifecycle of the server", labels=["status"])
    state.add_metric([status], 1)
    yield state
    yield GaugeMetricFamily(
        "specserve_worker_up", "Whether the worker answered this scrape", value=worker_up
    )


def control_metrics(pinned: PinnedTo | None) -> Iterator[Metric]:
    """What the operators have set, whatever the worker says."""
    family = GaugeMetricFamily(
        "specserve_pinned", "1 if the policy is pinned to this by an operator", labels=["to"]
    )
    for to in get_args(PinnedTo):
        family.add_metric([to], to == pinned)
    yield family


def engine_metrics(stats: EngineStats) -> Iterator[Metric]:
    """What the worker told."""
    for name, text in _COUNTERS.items():
        yield CounterMetricFamily(f"specserve_{name}", text, value=getattr(stats, name))
    for name, text in _GAUGES.items():
        yield GaugeMetricFamily(f"specserve_{name}", text, value=getattr(stats, name))
    yield from _acceptance(stats)
    yield from _by_mode(stats)
    yield from _policy(stats)


def _acceptance(stats: EngineStats) -> Iterator[Metric]:
    by_position = CounterMetricFamily(
        "specserve_accepted_by_position",
        "Requests and rounds in which the draft token at this position was kept",
        labels=["position"],
    )
    for position, accepted in enumerate(stats.accepted_by_position, start=1):
        by_position.add_metric([str(position)], accepted)
    yield by_position
    text = "Draft tokens that were verified and not kept: drafted - accepted"
    wasted = stats.drafted - stats.accepted
    yield CounterMetricFamily("specserve_wasted_draft", text, value=wasted)
    if stats.acceptance_length is not None:
        text = "Tokens emitted per request and verify round since start, bonus token included"
        yield GaugeMetricFamily("specserve_acceptance_length", text, value=stats.acceptance_length)
    if stats.acceptance_rate is not None:
        text = "accepted / drafted since start"
        yield GaugeMetricFamily("specserve_acceptance_rate", text, value=stats.acceptance_rate)
        text = "wasted_draft / drafted since start"
        yield GaugeMetricFamily("specserve_wasted_draft_rate", text, value=wasted / stats.drafted)


def _by_mode(stats: EngineStats) -> Iterator[Metric]:
    seconds = CounterMetricFamily(
        "specserve_seconds_by_mode", "Time spent in each mode", labels=["mode"]
    )
    for mode, spent in stats.seconds_by_mode.items():
        seconds.add_metric([mode], spent)
    yield seconds
    emitted = CounterMetricFamily(
        "specserve_emitted_by_mode", "Tokens emitted in each mode", labels=["mode"]
    )
    for mode, count in stats.emitted_by_mode.items():
        emitted.add_metric([mode], count)
    yield emitted


def _policy(stats: EngineStats) -> Iterator[Metric]:
    policy = stats.policy
    on = GaugeMetricFamily("specserve_mode", "1 for the mode that is on", labels=["mode"])
    for mode in Mode:
        on.add_metric([mode], mode is policy.mode)
    yield on
    yield InfoMetricFamily(
        "specserve_policy",
        "The policy in force and why it chose this mode",
        value={"kind": policy.policy.kind, "mode": policy.mode, "rule": rule(policy.reason)},
    )
    yield GaugeMetricFamily(
        "specserve_num_steps", "Draft steps per round now; 0 is plain", value=policy.num_steps
    )
    yield GaugeMetricFamily(
        "specserve_since_seconds", "How long this depth is in force", value=policy.since_seconds
    )
    yield CounterMetricFamily("specserve_switches", "Changes of depth", value=policy.switches)


def rule(reason: str) -> str:
    """`reason` with each number as N: one label for each rule, not one for each round."""
    return _NUMBER.sub("N", reason)
