"""A fault in every phase of real processes: it is named, nothing serves, nothing is left.

Every fault in every phase of a worker that starts quickly; one in every phase of the torch worker.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from specserve.config.build import PhaseLimits
from specserve.errors import PhaseError
from specserve.plan import Plan
from specserve.worker.events import EventLog, read_events
from specserve.worker.launch import build_worker
from specserve.worker.ledger import Ledger, read_ledger
from specserve.worker.phases import WORKER_PHASES, Phase, PhaseRecord

FAULTY = (sys.executable, str(Path(__file__).parent / "faulty_worker.py"))


def _build(
    folder: Path,
    plan: Plan,
    limits: PhaseLimits,
    fault: str,
    phase: Phase,
    kind: str = "scripted",
) -> tuple[PhaseError, float]:
    """The failure, and the seconds from the start of the faulty phase to the end of it all."""
    began = time.monotonic()
    seen: list[PhaseRecord] = []

    def observe(record: PhaseRecord) -> None:
        nonlocal began
        seen.append(record)
        if (record.phase, record.event) == (phase, "start"):
            began = time.monotonic()

    async def build() -> None:
        ledger, events = Ledger(folder / "ledger.jsonl"), EventLog(folder / "events.jsonl")
        command = (*FAULTY, kind, fault, phase.value)
        try:
            await build_worker(
                plan,
                ledger,
                events.append,
                limits=limits,
                step_limit_seconds=60.0,
                command=command,
                observe=observe,
            )
        finally:
            ledger.close()
            events.close()

    with pytest.raises(PhaseError) as caught:
        asyncio.run(build())
    assert [] == psutil.Process().children(recursive=True)
    return caught.value, time.monotonic() - began


def _check_ledger(folder: Path, phase: Phase) -> list[PhaseRecord]:
    """Every earlier phase closed once, the faulty one started and failed once, no later one."""
    records = list(read_ledger(folder / "ledger.jsonl"))
    earlier = WORKER_PHASES[: WORKER_PHASES.index(phase)]
    for done in earlier:
        events = [record.event for record in records if record.phase is done]
        assert events[:2] in (["start", "done"], ["start", "skipped"])
    assert ["start", "failed"] == [record.event for record in records if record.phase is phase]
    assert {*earlier, phase} == {record.phase for record in records}
    return records


@pytest.mark.parametrize("phase", WORKER_PHASES)
def test_an_exception_undoes_what_stands_and_is_named(
    tmp_path: Path, plan: Plan, limits: PhaseLimits, phase: Phase
) -> None:
    error, _ = _build(tmp_path, plan, limits, "raise", phase)

    earlier = WORKER_PHASES[: WORKER_PHASES.index(phase)]
    assert (phase, "RuntimeError: injected", earlier) == (error.phase, error.cause, error.done)
    records = _check_ledger(tmp_path, phase)
    assert list(reversed(earlier)) == [r.phase for r in records if r.event == "undone"]
    (event,) = read_events(tmp_path / "events.jsonl")
    assert "RuntimeError: injected" in event.fields["traceback"]


@pytest.mark.parametrize("phase", WORKER_PHASES)
def test_a_killed_worker_is_named_within_a_second(
    tmp_path: Path, plan: Plan, limits: PhaseLimits, phase: Phase
) -> None:
    error, seconds = _build(tmp_path, plan, limits, "kill", phase)

    assert phase == error.phase
    assert "killed by SIGKILL (exit status 137)" in error.cause
    assert seconds < 1.0  # B05
    _check_ledger(tmp_path, phase)


@pytest.mark.parametrize("phase", WORKER_PHASES)
def test_a_phase_that_returns_nothing_has_failed(
    tmp_path: Path, plan: Plan, limits: PhaseLimits, phase: Phase
) -> None:
    error, _ = _build(tmp_path, plan, limits, "nothing", phase)

    assert phase == error.phase
    assert "returned nothing" in error.cause
    _check_ledger(tmp_path, phase)


@pytest.mark.parametrize("phase", WORKER_PHASES)
def test_a_phase_that_hangs_is_killed_at_its_limit(
    tmp_path: Path, plan: Plan, make_limits: Callable[..., PhaseLimits], phase: Phase
) -> None:
    # The first phase's limit covers the start of the process.
    limit = 5.0 if phase is Phase.ATTRIBUTES else 0.5
    limits = make_limits(60.0, **{phase.value: limit})

    error, seconds = _build(tmp_path, plan, limits, "hang", phase)

    assert (phase, f"time limit of {limit:g} s exceeded") == (error.phase, error.cause)
    assert seconds < limit + 1.0
    records = _check_ledger(tmp_path, phase)
    assert "supervisor" == records[-1].details["recorded_by"]


def test_a_worker_that_exits_in_a_phase_is_named(
    tmp_path: Path, plan: Plan, limits: PhaseLimits
) -> None:
    error, _ = _build(tmp_path, plan, limits, "exit", Phase.KV_CACHE)

    assert (Phase.KV_CACHE, "SystemExit: 7") == (error.phase, error.cause)
    _check_ledger(tmp_path, Phase.KV_CACHE)


@pytest.mark.parametrize(
    ("phase", "fault", "cause"),
    [
        (Phase.ATTRIBUTES, "raise", "RuntimeError: injected"),
        (Phase.LOAD_TARGET, "kill", "the worker process was killed by SIGKILL (exit status 137)"),
        (Phase.LOAD_DRAFT, "nothing", "TypeError: the phase returned nothing"),
        (Phase.KV_CACHE, "hang", "time limit of 1 s exceeded"),
        (Phase.ATTENTION_BACKEND, "raise", "RuntimeError: injected"),
        (Phase.CUDA_GRAPHS, "kill", "the worker process was killed by SIGKILL (exit status 137)"),
    ],
)
def test_the_torch_worker_fails_alike(
    tmp_path: Path,
    plan: Plan,
    make_limits: Callable[..., PhaseLimits],
    phase: Phase,
    fault: str,
    cause: str,
) -> None:
    limits = make_limits(60.0, **({phase.value: 1.0} if fault == "hang" else {}))

    error, _ = _build(tmp_path, plan, limits, fault, phase, "torch")

    assert (phase, cause) == (error.phase, error.cause)
    records = _check_ledger(tmp_path, phase)
    undone = [record.phase for record in records if record.event == "undone"]
    assert ([*reversed(error.done)] if fault in ("raise", "nothing") else []) == undone
