"""The supervisor's view of a build: what is recorded, which phase is open, how long it may last."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from specserve.config.build import PhaseLimits
from specserve.errors import PhaseError
from specserve.worker.journal import JournalError
from specserve.worker.ledger import Ledger, missing_phases
from specserve.worker.phases import CLOSING, Phase, PhaseRecord, host_bytes, now


class BuildWatch:
    """Keeps the records of one build. The clock of a phase runs from the end of the one before.

    So the first phase's limit covers the start of the worker process, and no time is unwatched.
    """

    def __init__(
        self,
        ledger: Ledger,
        limits: PhaseLimits,
        observe: Callable[[PhaseRecord], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._limits = limits
        self._observe = observe
        self._clock = clock
        self._phase_began = clock()
        self._records: list[PhaseRecord] = []

    @property
    def records(self) -> tuple[PhaseRecord, ...]:
        """So far, in the order in which they came."""
        return tuple(self._records)

    @property
    def done(self) -> tuple[Phase, ...]:
        """Phases that finished, whether or not they were undone since."""
        return tuple(r.phase for r in self._records if r.event in ("done", "skipped"))

    @property
    def phase(self) -> Phase:
        """The phase that is open, has failed, or is the next to start."""
        done = self.done
        return next((phase for phase in Phase if phase not in done), Phase.SELF_TEST)

    @property
    def failure(self) -> PhaseError | None:
        """The failure that has been recorded, if any."""
        causes = [(r.phase, r.details["cause"]) for r in self._records if r.event == "failed"]
        return PhaseError(causes[0][0], causes[0][1], self.done) if causes else None

    @property
    def limit_seconds(self) -> float:
        """What the configuration allows the present phase."""
        return float(getattr(self._limits, self.phase))

    def seconds_left(self) -> float:
        """Until the present phase exceeds its limit; negative afterwards."""
        return self._phase_began + self.limit_seconds - self._clock()

    def note(self, record: PhaseRecord) -> None:
        """Keep one record, then show it. Raises PhaseError if the ledger can't take it."""
        try:
            self._ledger.append(record)
        except JournalError as error:
            raise PhaseError(record.phase, f"the ledger is lost: {error}", self.done) from error
        self._records.append(record)
        if record.event in CLOSING:
            self._phase_began = self._clock()
        self._observe(record)

    def fail(self, cause: str) -> PhaseError:
        """Record that the present phase failed, for a worker that no longer can; what to raise.

        A failure that the worker itself has recorded stands: what came after is its consequence.
        """
        if recorded := self.failure:
            return recorded
        phase = self.phase
        if not any(record.phase is phase for record in self._records):
            self.note(self._record(phase, "start", {}))
        self.note(self._record(phase, "failed", {"cause": cause}))
        return PhaseError(phase, cause, self.done)

    def demand(self, phases: Sequence[Phase]) -> None:
        """Raises PhaseError unless each of `phases` has its closing record."""
        missing = [phase for _, phase in missing_phases(self._records, 1) if phase in phases]
        if missing:
            raise self.fail(f"the worker says it is built, without a record of {missing[0]}")

    def _record(
        self, phase: Phase, event: Literal["start", "failed"], details: dict[str, Any]
    ) -> PhaseRecord:
        """In place of the worker's own. The memory is the supervisor's: the worker has none."""
        started = event == "start"
        memory = host_bytes()
        return PhaseRecord(
            phase=phase,
            event=event,
            rank=0,
            time=now(),
            seconds=0.0 if started else self._clock() - self._phase_began,
            host_bytes_before=memory,
            host_bytes_after=None if started else memory,
            device_bytes_before=None,
            device_bytes_after=None,
            details={**details, "recorded_by": "supervisor"},
        )
