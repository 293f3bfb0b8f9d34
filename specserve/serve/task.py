"""Task `serve`: one run, from its configuration to its exit code.

HTTP answers its probes from the first phase on; the server is ready once the worker has passed
its self test.
"""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import structlog

from specserve.config.run import RunConfig
from specserve.errors import SpecserveError
from specserve.serve.prepare import Prepared, prepare
from specserve.serve.record import RunRecord
from specserve.serve.service import Service
from specserve.serve.told import signals
from specserve.server.app import create_app
from specserve.server.history import RunHistory
from specserve.server.run import run_server
from specserve.server.state import ServerState
from specserve.worker.events import EventLog
from specserve.worker.launch import TORCH_WORKER, build_worker
from specserve.worker.ledger import Ledger
from specserve.worker.phases import Phase

# Once nothing is served any more, answers under way get this long to say so.
CUT_OFF_SECONDS = 1.0

_LOG = structlog.get_logger("specserve.serve")


def serve(
    run: RunConfig,
    *,
    overrides: Sequence[str],
    run_directory: Path | None,
    worker_command: Sequence[str] = TORCH_WORKER,
) -> int:
    """Build the worker and serve until a signal; 0 after SIGTERM, 130 after SIGINT.

    Raises ConfigError before anything is started, PhaseError if the build fails, EngineError if
    the worker dies while serving. Whatever the end, no process of the run is left.
    """
    prepared = prepare(run, overrides=overrides, run_directory=run_directory)
    _LOG.info("run.directory", path=str(prepared.directory.path))
    with (
        prepared.listener,
        closing(prepared.directory.open_ledger()) as ledger,
        closing(prepared.directory.open_events()) as events,
    ):
        return asyncio.run(_live(prepared, ledger, events, worker_command))


async def _live(
    prepared: Prepared, ledger: Ledger, events: EventLog, worker_command: Sequence[str]
) -> int:
    state = ServerState(phase=Phase.ATTRIBUTES)
    history = RunHistory()
    record = RunRecord(events, state, history)
    record.plan(prepared.plan)
    app = create_app(
        state,
        plan=prepared.plan,
        facts=prepared.facts,
        config=prepared.run.server,
        record_event=record.event,
        history=history,
    )
    stop = asyncio.Event()
    http = asyncio.create_task(
        run_server(app, prepared.listener, stop=stop, grace_seconds=CUT_OFF_SECONDS)
    )
    build = partial(
        build_worker,
        prepared.plan,
        ledger,
        record.event,
        limits=prepared.run.build.limit_seconds,
        step_limit_seconds=prepared.run.scheduler.step_limit_seconds,
        command=worker_command,
        observe=record.phase,
    )
    try:
        with signals() as told:
            return await Service(prepared, record, state, http, stop.set).until_told(build, told)
    except SpecserveError as error:
        state.fail(str(error))
        raise
    finally:
        stop.set()
        await asyncio.wait({http})
