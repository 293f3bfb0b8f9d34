"""The life of a run: build, serve, drain, end. One waits for whatever comes first."""

import asyncio
import gc
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import structlog

from specserve.errors import EngineError
from specserve.serve.listener import url
from specserve.serve.prepare import Prepared
from specserve.serve.record import RunRecord
from specserve.serve.told import Told
from specserve.server.state import ServerState, Serving
from specserve.server.tokenizer import Tokenizer, load_tokenizer
from specserve.worker.launch import Worker

T = TypeVar("T")
Task = asyncio.Task

INTERRUPTED = 130

_LOG = structlog.get_logger("specserve.serve")


class Service:
    """One run beside its HTTP server. `http` ending by itself is a failure like any other."""

    def __init__(
        self,
        prepared: Prepared,
        record: RunRecord,
        state: ServerState,
        http: Task[None],
        stop_http: Callable[[], None],
    ) -> None:
        self._prepared = prepared
        self._record = record
        self._state = state
        self._http = http
        self._stop_http = stop_http

    async def until_told(self, build: Callable[[], Awaitable[Worker]], told: Told) -> int:
        """Build, then serve until a signal; the exit code.

        Raises PhaseError if the build fails, EngineError if the worker or HTTP ends by itself.
        """
        async with running(told.get()) as order:
            async with running(self._built(build)) as building:
                await self._first(building, order)
                if not building.done():
                    self._state.drain()
                    return _exit_code(order.result())
                worker, tokenizer = building.result()
            try:
                self._ready(worker, tokenizer)
                return await self._serve(worker, order, told)
            finally:
                self._stop_http()  # it takes as long as the worker does: both end at the same time
                await worker.engine.close()

    async def _built(self, build: Callable[[], Awaitable[Worker]]) -> tuple[Worker, Tokenizer]:
        """The server's own tokenizer takes seconds to load: at the same time as the worker."""
        target = self._prepared.plan.target
        async with running(asyncio.to_thread(load_tokenizer, target)) as loading:
            worker = await build()
            try:
                return worker, await loading
            except BaseException:
                await worker.engine.close()
                raise

    def _ready(self, worker: Worker, tokenizer: Tokenizer) -> None:
        engine = worker.engine
        # What start-up made stays: without it collections are short while serving, and the end is
        # not held up for a second by taking down all that transformers has imported.
        gc.freeze()
        self._state.ready(Serving(engine=engine, tokenizer=tokenizer, probe=engine.alive))
        name, policy = self._prepared.plan.target.name, self._prepared.plan.policy.kind
        _LOG.info("server.ready", url=url(self._prepared.listener), model=name, policy=policy)

    async def _serve(self, worker: Worker, order: Task[signal.Signals], told: Told) -> int:
        async with running(worker.engine.wait_failed()) as death:
            await self._first_alive(death, order)
            if order.result() is signal.SIGTERM:
                return await self._drain(death, told)
            return _exit_code(order.result())

    async def _drain(self, death: Task[str], told: Told) -> int:
        """What runs may finish, until the limit or the next signal."""
        limit = self._prepared.run.server.drain_seconds
        self._state.drain()
        _LOG.info("server.draining", limit_seconds=limit)
        async with (
            running(self._state.idle()) as idle,
            running(asyncio.sleep(limit)) as late,
            running(told.get()) as again,
        ):
            await self._first_alive(death, idle, late, again)
            if not idle.done():
                self._record.event("warning.cut_off", {"after_seconds": limit})
            return _exit_code(again.result()) if again.done() else 0

    async def _first_alive(self, death: Task[str], *tasks: Task[Any]) -> None:
        """As `_first`; raises EngineError if it is the worker that has ended."""
        await self._first(death, *tasks)
        if death.done():
            self._record.event("worker.died", {"reason": death.result()})
            raise EngineError(death.result())

    async def _first(self, *tasks: Task[Any]) -> None:
        """Return when one of `tasks` has ended."""
        await asyncio.wait({*tasks, self._http}, return_when=asyncio.FIRST_COMPLETED)
        if self._http.done():
            raise EngineError("the HTTP server ended by itself") from self._http.exception()


@asynccontextmanager
async def running(work: Coroutine[Any, Any, T]) -> AsyncIterator[Task[T]]:
    """`work` as a task that has ended when the block has: cancelled if it still ran."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


def _exit_code(told: signal.Signals) -> int:
    return INTERRUPTED if told is signal.SIGINT else 0
