from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specserve.config.build import PhaseLimits
from specserve.errors import PhaseError
from specserve.worker.journal import JournalError
from specserve.worker.ledger import Ledger, read_ledger
from specserve.worker.phases import WORKER_PHASES, Phase, PhaseEvent, PhaseRecord
from specserve.worker.watch import BuildWatch

MakeLimits = Callable[..., PhaseLimits]


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _record(phase: Phase, event: PhaseEvent, cause: str = "") -> PhaseRecord:
    return PhaseRecord(
        phase=phase,
        event=event,
        rank=0,
        time="2026-01-01T00:00:00.000+00:00",
        seconds=0.0,
        host_bytes_before=1,
        host_bytes_after=None,
        device_bytes_before=None,
        device_bytes_after=None,
        details={"cause": cause} if cause else {},
    )


def _finish(watch: BuildWatch, *phases: Phase) -> None:
    for phase in phases:
        watch.note(_record(phase, "start"))
        watch.note(_record(phase, "done"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shown() -> list[PhaseRecord]:
    return []


@pytest.fixture
def watch(
    tmp_path: Path, make_limits: MakeLimits, clock: Clock, shown: list[PhaseRecord]
) -> Iterator[BuildWatch]:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    yield BuildWatch(ledger, make_limits(10.0, load_target=500.0), shown.append, clock)
    ledger.close()


def test_a_record_is_in_the_ledger_before_it_is_shown(
    watch: BuildWatch, tmp_path: Path, shown: list[PhaseRecord]
) -> None:
    record = _record(Phase.ATTRIBUTES, "start")

    watch.note(record)

    assert (record,) == read_ledger(tmp_path / "ledger.jsonl")
    assert [record] == shown


def test_the_clock_of_a_phase_runs_from_the_end_of_the_one_before(
    watch: BuildWatch, clock: Clock
) -> None:
    """So a worker that never reports a start is found out as well."""
    clock.now += 4
    assert 6.0 == watch.seconds_left()

    _finish(watch, Phase.ATTRIBUTES)
    clock.now += 4
    watch.note(_record(Phase.LOAD_TARGET, "start"))

    assert (Phase.LOAD_TARGET, 496.0) == (watch.phase, watch.seconds_left())


def test_a_failure_that_only_the_supervisor_sees_gets_its_records(watch: BuildWatch) -> None:
    _finish(watch, Phase.ATTRIBUTES, Phase.LOAD_TARGET)

    error = watch.fail("the worker process was killed by SIGKILL")

    assert ("load_draft", ("attributes", "load_target")) == (error.phase, error.done)
    assert [("load_draft", "start"), ("load_draft", "failed")] == [
        (record.phase, record.event) for record in watch.records[-2:]
    ]


def test_a_phase_that_had_started_gets_no_second_start(watch: BuildWatch, clock: Clock) -> None:
    watch.note(_record(Phase.ATTRIBUTES, "start"))
    clock.now += 3

    watch.fail("time limit of 10 s exceeded")

    assert ["start", "failed"] == [record.event for record in watch.records]
    assert 3.0 == watch.records[-1].seconds
    assert "supervisor" == watch.records[-1].details["recorded_by"]


def test_a_failure_that_the_worker_recorded_stands(watch: BuildWatch) -> None:
    """The worker names the cause; that its process ends afterwards is a consequence."""
    _finish(watch, Phase.ATTRIBUTES)
    watch.note(_record(Phase.LOAD_TARGET, "start"))
    watch.note(_record(Phase.LOAD_TARGET, "failed", "OSError: no such file"))
    watch.note(_record(Phase.ATTRIBUTES, "undone"))

    error = watch.fail("the worker process ended with exit status 3")

    assert ("load_target", "OSError: no such file", ("attributes",)) == (
        error.phase,
        error.cause,
        error.done,
    )
    assert "undone" == watch.records[-1].event


def test_a_phase_without_a_record_is_a_failure_of_its_own(watch: BuildWatch) -> None:
    _finish(watch, *(phase for phase in WORKER_PHASES if phase is not Phase.KV_CACHE))

    with pytest.raises(PhaseError, match=r"kv_cache failed: .* without a record of kv_cache"):
        watch.demand(WORKER_PHASES)


def test_all_records_satisfy_the_demand(watch: BuildWatch) -> None:
    _finish(watch, *WORKER_PHASES)

    watch.demand(WORKER_PHASES)

    assert Phase.SELF_TEST is watch.phase


def test_a_ledger_that_cannot_be_written_ends_the_build(make_limits: MakeLimits) -> None:
    ledger = Ledger(Path("/dev/full"))
    watch = BuildWatch(ledger, make_limits(10.0), lambda record: None)

    with pytest.raises(PhaseError, match="attributes failed: the ledger is lost") as caught:
        watch.note(_record(Phase.ATTRIBUTES, "start"))

    assert isinstance(caught.value.__cause__, JournalError)
    with pytest.raises(OSError, match="No space left"):
        ledger.close()
