"""What the dashboard shows of the past: phases, samples of the counters, events. Bounded."""

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from specserve.engine import EngineStats

MAX_SAMPLES = 900  # a quarter of an hour, at a sample a second
MAX_EVENTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEntry:
    """The last word of the ledger on a phase. `began` in Unix seconds; `seconds` None: it runs."""

    phase: str
    event: str
    began: float
    seconds: float | None
    details: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The engine at one moment. Counters are totals since start: subtract two samples.

    `time` in Unix seconds; `number` counts samples and events together.
    """

    number: int
    time: float
    num_steps: int
    running_decodes: int
    running: int
    queued: int
    used_slots: int
    emitted: int
    drafted: int
    accepted: int
    verify_rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventEntry:
    """A line of events.jsonl. `time` in Unix seconds."""

    number: int
    time: float
    kind: str
    fields: dict[str, Any]


Entry = TypeVar("Entry", Sample, EventEntry)


class RunHistory:
    """The recent past of one run. The run record feeds it phases and events, the watch samples."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._numbers = itertools.count(1)
        self._last_number = 0
        self._phases: dict[str, PhaseEntry] = {}
        self._samples: deque[Sample] = deque(maxlen=MAX_SAMPLES)
        self._events: deque[EventEntry] = deque(maxlen=MAX_EVENTS)
        self._stats: EngineStats | None = None

    @property
    def last_number(self) -> int:
        """Of the newest sample or event; 0 before the first."""
        return self._last_number

    @property
    def stats(self) -> EngineStats | None:
        """The totals of the newest sample."""
        return self._stats

    @property
    def phases(self) -> tuple[PhaseEntry, ...]:
        """The last word on each phase, in the order in which they began."""
        return tuple(self._phases.values())

    def note_phase(
        self, phase: str, event: str, at: float, seconds: float, details: dict[str, Any]
    ) -> None:
        """A record of the ledger, made at `at` (Unix seconds, by the clock of who made it)."""
        known = self._phases.get(phase)
        if known is None:
            began, lasted = at - seconds, None if event == "start" else seconds
        else:  # what undoes a phase comes after its end, which stands
            began, lasted = known.began, seconds if known.seconds is None else known.seconds
        self._phases[phase] = PhaseEntry(
            phase=phase, event=event, began=began, seconds=lasted, details=details
        )

    def note_event(self, kind: str, fields: dict[str, Any]) -> None:
        """An event that went to events.jsonl just now."""
        self._events.append(
            EventEntry(number=self._next(), time=self._clock(), kind=kind, fields=fields)
        )

    def note_stats(self, stats: EngineStats) -> None:
        """Totals that were read just now."""
        self._stats = stats
        self._samples.append(
            Sample(
                number=self._next(),
                time=self._clock(),
                num_steps=stats.policy.num_steps,
                running_decodes=stats.running_decodes,
                running=stats.running,
                queued=stats.queued,
                used_slots=stats.total_slots - stats.free_slots,
                emitted=stats.emitted,
                drafted=stats.drafted,
                accepted=stats.accepted,
                verify_rounds=stats.verify_rounds,
            )
        )

    def samples(self, after: int) -> list[Sample]:
        """Those with a higher number than `after`, oldest first."""
        return _newer(self._samples, after)

    def events(self, after: int) -> list[EventEntry]:
        """Those with a higher number than `after`, oldest first."""
        return _newer(self._events, after)

    def _next(self) -> int:
        self._last_number = next(self._numbers)
        return self._last_number


def _newer(entries: Iterable[Entry], after: int) -> list[Entry]:
    return [entry for entry in entries if entry.number > after]
