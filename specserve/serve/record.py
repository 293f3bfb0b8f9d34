"""Every phase and event of a run: to its files, the log, /ready and the dashboard."""

import logging
from datetime import datetime
from typing import Any

import structlog

from specserve.plan import Plan
from specserve.server.history import RunHistory
from specserve.server.state import ServerState
from specserve.worker.events import EventLog
from specserve.worker.phases import PhaseRecord

_LOG = structlog.get_logger("specserve.run")


class RunRecord:
    """Tells of a run as it goes."""

    def __init__(self, events: EventLog, state: ServerState, history: RunHistory) -> None:
        self._events = events
        self._state = state
        self._history = history

    def event(self, kind: str, fields: dict[str, Any]) -> None:
        """Raises JournalError if events.jsonl can't take it."""
        _LOG.log(_level(kind), kind, **fields)
        self._events.append(kind, fields)
        self._history.note_event(kind, fields)

    def phase(self, record: PhaseRecord) -> None:
        """A record that is in the ledger already."""
        at = datetime.fromisoformat(record.time).timestamp()
        self._history.note_phase(record.phase, record.event, at, record.seconds, record.details)
        if record.event == "start":
            self._state.start_phase(record.phase)
        write = _LOG.error if record.event in ("failed", "undo_failed") else _LOG.info
        write(
            f"phase.{record.event}",
            phase=record.phase.value,
            rank=record.rank,
            **_outcome(record),
        )

    def plan(self, plan: Plan) -> None:
        """What was decided, and what the user should know of it."""
        for adjustment in plan.adjustments:
            _LOG.info("plan.decided", **adjustment.model_dump())
        for warning in plan.warnings:
            self.event(
                "warning.plan", {"rule": warning.rule, "key": warning.key, "text": warning.text}
            )


def _level(kind: str) -> int:
    """An event's level is in the name of its kind."""
    if kind.startswith("warning."):
        return logging.WARNING
    broken = kind.endswith((".failed", ".fatal", ".hung", ".died"))
    return logging.ERROR if broken else logging.INFO


def _outcome(record: PhaseRecord) -> dict[str, Any]:
    """What a closing record has beyond the start's: seconds, memory before and after, details."""
    if record.event == "start":
        return {}
    fields: dict[str, Any] = {
        "seconds": round(record.seconds, 3),
        "host_memory": _change(record.host_bytes_before, record.host_bytes_after),
    }
    if record.device_bytes_before is not None:
        fields["device_memory"] = _change(record.device_bytes_before, record.device_bytes_after)
    return {**fields, "details": record.details}


def _change(before: int, after: int | None) -> str:
    """Bytes for people: "260 -> 384 MiB"."""
    return f"{before >> 20} -> {'?' if after is None else after >> 20} MiB"
