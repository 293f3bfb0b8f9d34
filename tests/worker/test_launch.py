import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from specserve.config.build import PhaseLimits
from specserve.config.policy import AlwaysPolicy
from specserve.engine import Mode
from specserve.errors import PhaseError
from specserve.plan import Plan
from specserve.worker.events import EventLog
from specserve.worker.launch import Worker, build_worker
from specserve.worker.ledger import Ledger, missing_phases, read_ledger
from specserve.worker.phases import Phase, PhaseRecord

SCRIPTED = (sys.executable, str(Path(__file__).parent / "scripted_worker.py"))
MakeLimits = Callable[..., PhaseLimits]


async def _build(
    folder: Path, plan: Plan, limits: PhaseLimits, lie: str, seen: list[PhaseRecord]
) -> Worker:
    ledger, events = Ledger(folder / "ledger.jsonl"), EventLog(folder / "events.jsonl")
    try:
        return await build_worker(
            plan,
            ledger,
            events.append,
            limits=limits,
            step_limit_seconds=60.0,
            command=(*SCRIPTED, lie),
            observe=seen.append,
        )
    finally:
        ledger.close()
        events.close()


def _failure(folder: Path, plan: Plan, limits: PhaseLimits, lie: str) -> PhaseError:
    """The PhaseError of a build that must fail, with every process of it gone."""
    with pytest.raises(PhaseError) as caught:
        asyncio.run(_build(folder, plan, limits, lie, []))
    assert [] == psutil.Process().children(recursive=True)
    return caught.value


def _last(folder: Path) -> tuple[str, str]:
    record = read_ledger(folder / "ledger.jsonl")[-1]
    return record.phase.value, record.event


def test_a_worker_that_tells_the_truth_is_built(
    tmp_path: Path, plan: Plan, limits: PhaseLimits
) -> None:
    seen: list[PhaseRecord] = []

    async def build() -> Worker:
        worker = await _build(tmp_path, plan, limits, "none", seen)
        await worker.engine.close()
        return worker

    worker = asyncio.run(build())

    assert [] == list(missing_phases(worker.records, 1))
    assert worker.records == read_ledger(tmp_path / "ledger.jsonl") == tuple(seen)
    assert [Mode.PLAIN, Mode.SPECULATIVE] == [proof.mode for proof in worker.proof.proofs]
    assert [] == psutil.Process().children(recursive=True)


def test_the_planned_policy_is_in_force_after_the_self_test(
    tmp_path: Path, make_plan: Callable[..., Plan], limits: PhaseLimits
) -> None:
    plan = make_plan(policy=AlwaysPolicy(kind="always"))

    async def policy() -> object:
        worker = await _build(tmp_path, plan, limits, "none", [])
        stats = await worker.engine.stats()
        await worker.engine.close()
        return stats.policy.policy

    assert AlwaysPolicy(kind="always") == asyncio.run(policy())


def test_without_a_draft_the_self_test_runs_plain_only(
    tmp_path: Path, make_plan: Callable[..., Plan], limits: PhaseLimits
) -> None:
    async def build() -> Worker:
        plan = make_plan(speculation=False)
        worker = await _build(tmp_path, plan, limits, "none", [])
        await worker.engine.close()
        return worker

    worker = asyncio.run(build())

    assert [Mode.PLAIN] == [proof.mode for proof in worker.proof.proofs]


@pytest.mark.parametrize(
    ("lie", "cause"),
    [
        ("drafts nothing", "speculative mode: nothing was drafted"),
        ("drafts when it should not", "plain mode: it did not decode plainly"),
        ("other output when it speculates", "greedy output differs between the modes at token 0"),
        ("not a number", "plain mode: logprobs that are not finite"),
        ("dies in the self test", "killed by SIGKILL (exit status 137)"),
    ],
)
def test_an_engine_that_lies_fails_the_self_test(
    tmp_path: Path, plan: Plan, limits: PhaseLimits, lie: str, cause: str
) -> None:
    error = _failure(tmp_path, plan, limits, lie)

    assert ("self_test", 3) == (error.phase, error.exit_code)
    assert cause in error.cause
    assert tuple(phase for phase in Phase if phase is not Phase.SELF_TEST) == error.done
    assert ("self_test", "failed") == _last(tmp_path)


def test_a_self_test_that_hangs_is_ended_at_its_limit(
    tmp_path: Path, plan: Plan, make_limits: MakeLimits
) -> None:
    began = time.monotonic()

    error = _failure(tmp_path, plan, make_limits(60.0, self_test=1.0), "hangs in the self test")

    assert "self_test" == error.phase
    assert "time limit of 1 s exceeded" in error.cause
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("lie", "phase", "cause"),
    [
        ("no records after load_draft", "kv_cache", "without a record of kv_cache"),
        ("answers too early", "self_test", "sent Pong before it was built"),
        ("sends garbage", "attributes", "the stream is garbled"),
    ],
)
def test_a_worker_that_breaks_the_protocol_is_stopped_and_named(
    tmp_path: Path, plan: Plan, limits: PhaseLimits, lie: str, phase: str, cause: str
) -> None:
    error = _failure(tmp_path, plan, limits, lie)

    assert phase == error.phase
    assert cause in error.cause
    assert (phase, "failed") == _last(tmp_path)


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        ((sys.executable, "-c", "raise SystemExit(7)"), "ended with exit status 7"),
        (("/no/such/program",), "cannot be started: .*No such file"),
    ],
)
def test_a_worker_that_cannot_even_start_names_the_first_phase(
    tmp_path: Path, plan: Plan, limits: PhaseLimits, command: tuple[str, ...], cause: str
) -> None:
    async def build() -> None:
        ledger, events = Ledger(tmp_path / "ledger.jsonl"), EventLog(tmp_path / "events.jsonl")
        try:
            await build_worker(
                plan,
                ledger,
                events.append,
                limits=limits,
                step_limit_seconds=60.0,
                command=command,
            )
        finally:
            ledger.close()
            events.close()

    with pytest.raises(PhaseError, match=f"attributes failed: .*{cause}"):
        asyncio.run(build())

    assert ["start", "failed"] == [r.event for r in read_ledger(tmp_path / "ledger.jsonl")]


def test_a_build_that_is_cancelled_leaves_no_process(
    tmp_path: Path, plan: Plan, limits: PhaseLimits
) -> None:
    async def cancel() -> None:
        seen: list[PhaseRecord] = []
        lie = "hangs in the self test"
        building = asyncio.create_task(_build(tmp_path, plan, limits, lie, seen))
        while not seen or seen[-1].phase is not Phase.SELF_TEST:
            await asyncio.sleep(0.02)
        building.cancel()
        with pytest.raises(asyncio.CancelledError):
            await building

    asyncio.run(cancel())

    assert [] == psutil.Process().children(recursive=True)
    assert ("self_test", "failed") == _last(tmp_path)


def test_a_ledger_that_cannot_be_written_ends_the_build(plan: Plan, limits: PhaseLimits) -> None:
    ledger, events = Ledger(Path("/dev/full")), EventLog(Path(os.devnull))

    with pytest.raises(PhaseError, match="attributes failed: the ledger is lost"):
        asyncio.run(
            build_worker(
                plan,
                ledger,
                events.append,
                limits=limits,
                step_limit_seconds=60.0,
                command=(*SCRIPTED, "none"),
            )
        )

    assert [] == psutil.Process().children(recursive=True)
    events.close()
    with pytest.raises(OSError, match="No space left"):
        ledger.close()
