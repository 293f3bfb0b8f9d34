"""events.jsonl: what happened in a run besides its build: policy switches, warnings, the end."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specserve.worker.journal import Journal, read_journal
from specserve.worker.phases import now

EventSink = Callable[[str, dict[str, Any]], None]
"""Takes an event as it happens: a constant name, and fields that are JSON values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`kind` is a constant name (policy.switch, worker.died); `fields` say the rest."""

    time: str
    kind: str
    fields: dict[str, Any]


class EventLog:
    """events.jsonl of one run."""

    def __init__(self, path: Path) -> None:
        """Raises JournalError if the file can't be opened."""
        self._journal: Journal[Event] = Journal(path)

    def append(self, kind: str, fields: dict[str, Any]) -> None:
        """Write one event, at the present time. Raises JournalError."""
        self._journal.append(Event(time=now(), kind=kind, fields=fields))

    def close(self) -> None:
        """Safe to call twice."""
        self._journal.close()


def read_events(path: Path) -> tuple[Event, ...]:
    """Every whole event, in order."""
    return read_journal(path, Event)
