"""From a plan to a finished worker: start its process, hold each phase to its limit, test it."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specserve.config.build import PhaseLimits
from specserve.errors import EngineError, PhaseError
from specserve.plan import Plan
from specserve.worker.child import Child, spawn
from specserve.worker.events import EventSink
from specserve.worker.ledger import Ledger
from specserve.worker.messages import PLAN, Build, BuildFailed, Built, Happened, PhaseReported
from specserve.worker.phases import WORKER_PHASES, Phase, PhaseRecord, PhaseRunner
from specserve.worker.remote import RemoteEngine
from specserve.worker.self_test import SelfTest, self_test
from specserve.worker.watch import BuildWatch

TORCH_WORKER = (sys.executable, "-m", "specserve.torch_engine.process")


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A finished worker. There is no way to hold one that has not passed every phase."""

    plan: Plan
    engine: RemoteEngine
    proof: SelfTest
    records: tuple[PhaseRecord, ...]


async def build_worker(
    plan: Plan,
    ledger: Ledger,
    record_event: EventSink,
    *,
    limits: PhaseLimits,
    step_limit_seconds: float,
    command: Sequence[str] = TORCH_WORKER,
    observe: Callable[[PhaseRecord], None] = lambda record: None,
) -> Worker:
    """Return the worker once every phase is recorded and its self test has passed.

    Each record goes to the ledger, then to `observe`. Raises PhaseError if a phase fails, exceeds
    its limit, or has no record; then, and on cancellation, no process of the worker is left. The
    finished worker is ended if one of its steps lasts longer than `step_limit_seconds`.
    """
    watch = BuildWatch(ledger, limits, observe)
    try:
        child = await spawn(command, {"OMP_NUM_THREADS": str(plan.num_threads)})
    except OSError as error:
        raise watch.fail(f"the worker process cannot be started: {error}") from error
    try:
        child.send(Build(plan_json=PLAN.dump_json(plan)))
        while not await _is_built(child, watch, record_event):
            pass
    except BaseException:
        await child.kill()
        raise
    engine = RemoteEngine(child, record_event, step_limit_seconds)
    try:
        proof = await _tested(engine, plan, watch)
    except BaseException:
        await child.kill()
        await engine.close()
        raise
    return Worker(plan=plan, engine=engine, proof=proof, records=watch.records)


async def _is_built(child: Child, watch: BuildWatch, record_event: EventSink) -> bool:
    """Take the next report of a worker that is building."""
    try:
        async with asyncio.timeout(watch.seconds_left()):
            report = await child.receive()
    except TimeoutError:
        raise watch.fail(_too_long(watch.limit_seconds)) from None
    except EngineError as error:
        raise watch.fail(str(error)) from error
    match report:
        case PhaseReported(record=record):
            watch.note(record)
        case Happened(kind=kind, fields=fields):
            record_event(kind, fields)
        case BuildFailed(cause=cause, traceback=traceback):
            record_event("build.failed", {"traceback": traceback})
            raise watch.fail(cause)
        case Built():
            watch.demand(WORKER_PHASES)
            return True
        case None:
            raise watch.fail(f"the worker process {await child.exited()}")
        case _:
            raise watch.fail(f"the worker sent {type(report).__name__} before it was built")
    return False


async def _tested(engine: RemoteEngine, plan: Plan, watch: BuildWatch) -> SelfTest:
    limit = watch.limit_seconds

    async def within_limit() -> SelfTest:
        try:
            async with asyncio.timeout(limit):
                return await self_test(engine, plan)
        except TimeoutError:
            raise EngineError(_too_long(limit)) from None

    runner = PhaseRunner(emit=watch.note, order=(Phase.SELF_TEST,))
    try:
        proof = await runner.run_async(Phase.SELF_TEST, within_limit, details=_proof_details)
    except PhaseError as error:
        raise PhaseError(error.phase, error.cause, watch.done) from error
    watch.demand(tuple(Phase))
    return proof


def _too_long(limit_seconds: float) -> str:
    return f"time limit of {limit_seconds:g} s exceeded"


def _proof_details(proof: SelfTest) -> Mapping[str, Any]:
    modes = {
        mode.mode.value: {
            "num_tokens": len(mode.token_ids),
            "drafted": mode.drafted,
            "accepted": mode.accepted,
            "verify_rounds": mode.verify_rounds,
            "plain_steps": mode.plain_steps,
        }
        for mode in proof.proofs
    }
    return {"modes": modes, "parted_at": proof.parted_at}
