"""The fixed build phases, their records, and the runner that no step can leave half-done."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal, TypeVar

import psutil

from specserve.errors import PhaseError

T = TypeVar("T")


class Phase(StrEnum):
    """The build order (design §5)."""

    ATTRIBUTES = "attributes"
    LOAD_TARGET = "load_target"
    LOAD_DRAFT = "load_draft"
    KV_CACHE = "kv_cache"
    ATTENTION_BACKEND = "attention_backend"
    CUDA_GRAPHS = "cuda_graphs"
    SELF_TEST = "self_test"


# The worker process runs all but the last; its supervisor tests it through the real request path.
WORKER_PHASES = tuple(phase for phase in Phase if phase is not Phase.SELF_TEST)

PhaseEvent = Literal["start", "done", "skipped", "failed", "undone", "undo_failed"]
CLOSING: frozenset[PhaseEvent] = frozenset({"done", "skipped", "failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRecord:
    """One line of the ledger. Memory in bytes; device memory is None without a GPU.

    Each phase has one `start` and exactly one of `done`, `skipped`, `failed`; a finished phase
    that a later failure takes back has an `undone` or `undo_failed` as well. `seconds` is 0.0 in
    a start record; the *_before fields are repeated in the closing record.
    """

    phase: Phase
    event: PhaseEvent
    rank: int
    time: str
    seconds: float
    host_bytes_before: int
    host_bytes_after: int | None
    device_bytes_before: int | None
    device_bytes_after: int | None
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Finished:
    phase: Phase
    undo: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Open:
    """A phase that has started and not ended: what its closing record repeats."""

    phase: Phase
    began: float
    host_bytes: int
    device_bytes: int | None


class PhaseRunner:
    """Runs phases in their order, in the process that does the work.

    `emit` gets each record as it is made; what it raises ends the build at once, without undo: a
    build that nobody can be told of has no point. `device_bytes` reads the device memory in use,
    None where there is no device.
    """

    def __init__(
        self,
        *,
        emit: Callable[[PhaseRecord], None],
        device_bytes: Callable[[], int | None] = lambda: None,
        rank: int = 0,
        order: Sequence[Phase] = WORKER_PHASES,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._emit = emit
        self._device_bytes = device_bytes
        self._rank = rank
        self._order = tuple(order)
        self._clock = clock
        self._finished: list[_Finished] = []

    @property
    def done(self) -> tuple[Phase, ...]:
        """Phases that finished and stand (done or skipped), in order."""
        return tuple(finished.phase for finished in self._finished)

    def run(
        self,
        phase: Phase,
        step: Callable[[], T | None],
        *,
        details: Callable[[T], Mapping[str, Any]],
        undo: Callable[[T], None] | None = None,
    ) -> T:
        """Return what `step` returns; `undo` gets it back if a later phase fails.

        Raises PhaseError when the step raises or returns None, or is not the next in order: the
        finished phases are then undone, last first.
        """
        with self._recorded(phase) as opened:
            result = _something(step())
            found = dict(details(result))
        self._finish(opened, "done", found, lambda: undo(result) if undo else None)
        return result

    async def run_async(
        self,
        phase: Phase,
        step: Callable[[], Awaitable[T | None]],
        *,
        details: Callable[[T], Mapping[str, Any]],
    ) -> T:
        """As `run`, for a step that waits; a step that is cancelled has failed."""
        with self._recorded(phase) as opened:
            result = _something(await step())
            found = dict(details(result))
        self._finish(opened, "done", found, lambda: None)
        return result

    def skip(self, phase: Phase, reason: str) -> None:
        """Record that this build has no such step, and why."""
        self._finish(self._start(phase), "skipped", {"reason": reason}, lambda: None)

    @contextmanager
    def _recorded(self, phase: Phase) -> Iterator[_Open]:
        """A phase from its start record on; whatever leaves the block as an error fails it."""
        opened = self._start(phase)
        try:
            yield opened
        except BaseException as error:
            failure = self._fail(opened, error)
            if isinstance(error, Exception):
                raise failure from error
            raise  # an interrupt or a cancellation stays what it is

    def _start(self, phase: Phase) -> _Open:
        self._demand_order(phase)
        opened = _Open(phase, self._clock(), host_bytes(), self._device_bytes())
        self._emit(self._record(opened, "start", {}))
        return opened

    def _demand_order(self, phase: Phase) -> None:
        position = len(self._finished)
        expected = self._order[position] if position < len(self._order) else None
        if phase is not expected:
            cause = f"out of order: expected {expected or 'no further phase'}"
            raise PhaseError(phase, cause, self._undo_all())

    def _finish(
        self, opened: _Open, event: PhaseEvent, details: dict[str, Any], undo: Callable[[], None]
    ) -> None:
        self._finished.append(_Finished(opened.phase, undo))
        self._emit(self._record(opened, event, details))

    def _fail(self, opened: _Open, error: BaseException) -> PhaseError:
        """Record the failure, undo what stands, and return what to raise."""
        cause = describe(error)
        self._emit(self._record(opened, "failed", {"cause": cause}))
        return PhaseError(opened.phase, cause, self._undo_all())

    def _undo_all(self) -> tuple[Phase, ...]:
        done = self.done
        while self._finished:
            finished = self._finished.pop()
            opened = _Open(finished.phase, self._clock(), host_bytes(), self._device_bytes())
            try:
                finished.undo()
            except Exception as error:  # noqa: BLE001 - recorded; the first failure is the cause
                self._emit(self._record(opened, "undo_failed", {"cause": describe(error)}))
            else:
                self._emit(self._record(opened, "undone", {}))
        return done

    def _record(self, opened: _Open, event: PhaseEvent, details: dict[str, Any]) -> PhaseRecord:
        started = event == "start"
        return PhaseRecord(
            phase=opened.phase,
            event=event,
            rank=self._rank,
            time=now(),
            seconds=0.0 if started else self._clock() - opened.began,
            host_bytes_before=opened.host_bytes,
            host_bytes_after=None if started else host_bytes(),
            device_bytes_before=opened.device_bytes,
            device_bytes_after=None if started else self._device_bytes(),
            details=details,
        )


def describe(error: BaseException) -> str:
    """The cause in one line: what it is and what it says."""
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def now() -> str:
    """Wall-clock time as ledgers and events write it: ISO 8601, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def host_bytes() -> int:
    """Resident memory of this process."""
    return int(psutil.Process().memory_info().rss)


def _something(result: T | None) -> T:
    if result is None:
        raise TypeError("the phase returned nothing")
    return result
