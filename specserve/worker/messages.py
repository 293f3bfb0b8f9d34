"""The messages between supervisor and worker: one closed union each way.

The engine's dataclasses travel as they are; values that hold pydantic models (plan, policy,
stats) travel as their JSON, made and read by the adapters below.
"""

from typing import Any

import msgspec
from pydantic import TypeAdapter

from specserve.config.policy import PolicyConfig
from specserve.engine import EngineStats, GenerationChunk, GenerationRequest, PolicyState
from specserve.errors import Problem
from specserve.plan import Plan
from specserve.worker.phases import PhaseRecord

PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)
POLICY: TypeAdapter[PolicyConfig] = TypeAdapter(PolicyConfig)
POLICY_STATE: TypeAdapter[PolicyState] = TypeAdapter(PolicyState)
STATS: TypeAdapter[EngineStats] = TypeAdapter(EngineStats)


class _Frame(msgspec.Struct, frozen=True, kw_only=True, tag=True, forbid_unknown_fields=True):
    """Told apart by its class name."""


class Build(_Frame, frozen=True, kw_only=True):
    """First, and once: build this plan."""

    plan_json: bytes


class Submit(_Frame, frozen=True, kw_only=True):
    """Answered by Chunks up to a finish_reason, or by one RequestRefused or RequestFailed."""

    request: GenerationRequest


class Abort(_Frame, frozen=True, kw_only=True):
    """Free what the request holds; what it had still to come isn't sent."""

    request_id: str


class SetPolicy(_Frame, frozen=True, kw_only=True):
    """Answered by PolicySet or PolicyRefused."""

    call: int
    policy_json: bytes


class ReadStats(_Frame, frozen=True, kw_only=True):
    """Answered by StatsRead, from the loop itself."""

    call: int


class Ping(_Frame, frozen=True, kw_only=True):
    """Answered by Pong at once, also in the middle of a step."""

    call: int


class Shutdown(_Frame, frozen=True, kw_only=True):
    """End now, with exit status 0."""


Command = Build | Submit | Abort | SetPolicy | ReadStats | Ping | Shutdown


class PhaseReported(_Frame, frozen=True, kw_only=True):
    """A record for the ledger, sent when it was made."""

    record: PhaseRecord


class Built(_Frame, frozen=True, kw_only=True):
    """Every phase of the worker has been recorded; it takes requests from now on."""


class BuildFailed(_Frame, frozen=True, kw_only=True):
    """The worker has undone what stood, and ends."""

    cause: str
    traceback: str


class Chunks(_Frame, frozen=True, kw_only=True):
    """What one step added."""

    chunks: tuple[GenerationChunk, ...]


class RequestRefused(_Frame, frozen=True, kw_only=True):
    """A RequestError, for the client."""

    request_id: str
    message: str
    param: str | None
    status: int


class RequestFailed(_Frame, frozen=True, kw_only=True):
    """One request broke; the others go on."""

    request_id: str
    message: str


class StatsRead(_Frame, frozen=True, kw_only=True):
    """Answer to ReadStats."""

    call: int
    stats_json: bytes


class PolicySet(_Frame, frozen=True, kw_only=True):
    """The policy is in force from the next round on."""

    call: int
    state_json: bytes


class PolicyRefused(_Frame, frozen=True, kw_only=True):
    """A ConfigError, problem by problem."""

    call: int
    problems: tuple[Problem, ...]


class Pong(_Frame, frozen=True, kw_only=True):
    """`step_seconds`: how long the running step has been running; None while the loop waits."""

    call: int
    step_seconds: float | None


class Happened(_Frame, frozen=True, kw_only=True):
    """An event for events.jsonl and the log."""

    kind: str
    fields: dict[str, Any]


class Fatal(_Frame, frozen=True, kw_only=True):
    """The loop broke; the worker ends."""

    message: str
    traceback: str


AboutRequest = Chunks | RequestRefused | RequestFailed
Answer = StatsRead | PolicySet | PolicyRefused | Pong
AboutBuild = PhaseReported | Built | BuildFailed
Report = AboutBuild | AboutRequest | Answer | Happened | Fatal
