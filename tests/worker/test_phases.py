import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from specserve.errors import PhaseError
from specserve.worker.phases import WORKER_PHASES, Phase, PhaseRecord, PhaseRunner


def _runner(records: list[PhaseRecord], **options: Any) -> PhaseRunner:  # noqa: ANN401 - passed on
    return PhaseRunner(emit=records.append, **options)


def _no_details(result: object) -> dict[str, Any]:
    return {}


def _events(records: list[PhaseRecord]) -> list[tuple[str, str]]:
    return [(record.phase.value, record.event) for record in records]


def _raise(error: BaseException) -> Callable[[], object]:
    def step() -> object:
        raise error

    return step


def test_a_phase_leaves_start_and_done_and_returns_its_value() -> None:
    records: list[PhaseRecord] = []
    clock = iter([10.0, 12.5])
    runner = _runner(records, clock=lambda: next(clock), device_bytes=lambda: 7, rank=3)

    result = runner.run(Phase.ATTRIBUTES, lambda: "made", details=lambda made: {"value": made})

    start, done = records
    assert "made" == result
    assert [("attributes", "start"), ("attributes", "done")] == _events(records)
    assert (0.0, 2.5) == (start.seconds, done.seconds)
    assert (None, None) == (start.host_bytes_after, start.device_bytes_after)
    assert start.host_bytes_before == done.host_bytes_before
    assert done.host_bytes_after is not None
    assert done.host_bytes_after > 1_000_000
    assert (7, 7, 3) == (done.device_bytes_before, done.device_bytes_after, done.rank)
    assert {"value": "made"} == done.details


def test_a_failure_undoes_the_finished_phases_last_first() -> None:
    records: list[PhaseRecord] = []
    undone: list[str] = []
    runner = _runner(records)
    runner.run(Phase.ATTRIBUTES, lambda: "a", details=_no_details, undo=undone.append)
    runner.run(Phase.LOAD_TARGET, lambda: "b", details=_no_details, undo=undone.append)

    with pytest.raises(PhaseError) as caught:
        runner.run(Phase.LOAD_DRAFT, _raise(OSError("disk gone")), details=_no_details)

    assert ["b", "a"] == undone
    assert ("load_draft", "OSError: disk gone", ("attributes", "load_target")) == (
        caught.value.phase,
        caught.value.cause,
        caught.value.done,
    )
    assert isinstance(caught.value.__cause__, OSError)
    assert [
        ("load_draft", "failed"),
        ("load_target", "undone"),
        ("attributes", "undone"),
    ] == _events(records)[-3:]
    assert () == runner.done


def test_an_undo_that_fails_is_recorded_and_does_not_hide_the_cause() -> None:
    records: list[PhaseRecord] = []
    undone: list[str] = []

    def stuck(value: str) -> None:
        raise RuntimeError("stuck")

    runner = _runner(records)
    runner.run(Phase.ATTRIBUTES, lambda: "a", details=_no_details, undo=undone.append)
    runner.run(Phase.LOAD_TARGET, lambda: "b", details=_no_details, undo=stuck)

    with pytest.raises(PhaseError, match="load_draft failed: ValueError: the cause"):
        runner.run(Phase.LOAD_DRAFT, _raise(ValueError("the cause")), details=_no_details)

    assert ["a"] == undone
    assert [
        ("load_target", "undo_failed", {"cause": "RuntimeError: stuck"}),
        ("attributes", "undone", {}),
    ] == [(r.phase.value, r.event, r.details) for r in records[-2:]]


def test_a_step_that_returns_nothing_has_failed() -> None:
    records: list[PhaseRecord] = []

    with pytest.raises(PhaseError, match=r"attributes failed: .*returned nothing"):
        _runner(records).run(Phase.ATTRIBUTES, lambda: None, details=_no_details)

    assert [("attributes", "start"), ("attributes", "failed")] == _events(records)


def test_details_that_break_fail_their_phase() -> None:
    """A phase whose result can't be described has exactly one closing record: failed."""
    records: list[PhaseRecord] = []

    def broken(result: int) -> dict[str, Any]:
        raise KeyError("bytes")

    with pytest.raises(PhaseError, match="KeyError"):
        _runner(records).run(Phase.ATTRIBUTES, lambda: 1, details=broken)

    assert [("attributes", "start"), ("attributes", "failed")] == _events(records)


@pytest.mark.parametrize("phase", [Phase.ATTRIBUTES, Phase.LOAD_DRAFT, Phase.SELF_TEST])
def test_a_repeated_or_early_phase_is_refused_and_undoes_the_rest(phase: Phase) -> None:
    records: list[PhaseRecord] = []
    undone: list[str] = []
    runner = _runner(records)
    runner.run(Phase.ATTRIBUTES, lambda: "a", details=_no_details, undo=undone.append)

    with pytest.raises(PhaseError, match=f"{phase} failed: out of order: expected load_target"):
        runner.run(phase, lambda: 1, details=_no_details)

    assert ["a"] == undone


def test_a_phase_after_the_last_is_refused() -> None:
    runner = _runner([], order=(Phase.SELF_TEST,))
    runner.skip(Phase.SELF_TEST, "why not")

    with pytest.raises(PhaseError, match="expected no further phase"):
        runner.skip(Phase.SELF_TEST, "again")


def test_a_skipped_phase_keeps_its_reason_and_counts_as_done() -> None:
    records: list[PhaseRecord] = []
    runner = _runner(records)

    runner.skip(Phase.ATTRIBUTES, "nothing to set")

    assert [("attributes", "start"), ("attributes", "skipped")] == _events(records)
    assert {"reason": "nothing to set"} == records[-1].details
    assert (Phase.ATTRIBUTES,) == runner.done


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_an_interrupt_is_recorded_and_stays_an_interrupt(error: BaseException) -> None:
    records: list[PhaseRecord] = []

    with pytest.raises(type(error)):
        _runner(records).run(Phase.ATTRIBUTES, _raise(error), details=_no_details)

    assert ("attributes", "failed") == _events(records)[-1]


def test_a_phase_that_waits_is_recorded_alike() -> None:
    records: list[PhaseRecord] = []

    async def step() -> int:
        return 5

    runner = _runner(records, order=(Phase.SELF_TEST,))
    result = asyncio.run(runner.run_async(Phase.SELF_TEST, step, details=lambda n: {"n": n}))

    assert 5 == result
    assert [("self_test", "start"), ("self_test", "done")] == _events(records)
    assert {"n": 5} == records[-1].details


def test_a_cancelled_phase_has_failed() -> None:
    records: list[PhaseRecord] = []

    async def hang() -> int:
        await asyncio.sleep(60)
        return 1

    async def cancel() -> None:
        runner = _runner(records, order=(Phase.SELF_TEST,))
        task = asyncio.create_task(
            runner.run_async(Phase.SELF_TEST, hang, details=lambda n: {"n": n})
        )
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())

    assert [("self_test", "start"), ("self_test", "failed")] == _events(records)


def test_an_emit_that_raises_ends_the_build_before_the_step_runs() -> None:
    """A build that nobody can be told of has no point."""
    ran: list[int] = []

    def emit(record: PhaseRecord) -> None:
        raise BrokenPipeError("supervisor gone")

    runner = PhaseRunner(emit=emit)
    with pytest.raises(BrokenPipeError):
        runner.run(Phase.ATTRIBUTES, lambda: ran.append(1), details=_no_details)

    assert [] == ran


def test_the_worker_runs_every_phase_but_the_self_test_in_the_order_of_the_design() -> None:
    assert [
        "attributes",
        "load_target",
        "load_draft",
        "kv_cache",
        "attention_backend",
        "cuda_graphs",
        "self_test",
    ] == [*WORKER_PHASES, Phase.SELF_TEST]
