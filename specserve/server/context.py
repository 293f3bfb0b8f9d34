"""What the routes share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specserve.config.server import ServerConfig
from specserve.facts import Facts
from specserve.plan import Plan
from specserve.server.history import RunHistory
from specserve.server.metrics import Metrics
from specserve.server.policy_control import PolicyControl
from specserve.server.state import ServerState

EventSink = Callable[[str, dict[str, Any]], None]
"""Records an event (events.jsonl and the log): a constant name and fields that are JSON values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One server's parts. `created` is its start, in Unix seconds.

    A worker that does not answer within `probe_seconds` is not well; `watch_seconds` lie between
    two looks at its counters.
    """

    state: ServerState
    plan: Plan
    facts: Facts
    config: ServerConfig
    metrics: Metrics
    history: RunHistory
    control: PolicyControl
    record_event: EventSink
    created: int
    probe_seconds: float
    watch_seconds: float
