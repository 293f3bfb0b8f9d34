"""The Engine protocol over a worker process's connection."""

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any, TypeVar, assert_never

from specserve.config.policy import PolicyConfig
from specserve.engine import EngineStats, GenerationChunk, GenerationRequest, PolicyState
from specserve.errors import ConfigError, EngineError, RequestError, SpecserveError
from specserve.worker.child import Child
from specserve.worker.events import EventSink
from specserve.worker.hang import Pulse, until_hung
from specserve.worker.messages import (
    POLICY,
    POLICY_STATE,
    STATS,
    Abort,
    AboutRequest,
    Answer,
    BuildFailed,
    Built,
    Chunks,
    Command,
    Fatal,
    Happened,
    PhaseReported,
    Ping,
    PolicyRefused,
    PolicySet,
    Pong,
    ReadStats,
    Report,
    RequestFailed,
    RequestRefused,
    SetPolicy,
    Shutdown,
    StatsRead,
    Submit,
)
from specserve.worker.phases import describe

A = TypeVar("A")

# Told to end, a worker has stopped computing after the step in which it is. What it does afterwards
# is to take its interpreter down, a second or so for a torch that the kernel frees in a moment.
SHUTDOWN_SECONDS = 0.1
# So many requests are named in the reason why a worker was ended; the event names all.
_NUM_NAMED = 4

# What waits for one stream: chunks, then at most one error.
_Stream = asyncio.Queue[GenerationChunk | SpecserveError]


class RemoteEngine:
    """A built engine in another process. When that dies, every caller gets an EngineError.

    One that hangs for longer than `step_limit_seconds` is ended, which is a death as any other.
    """

    def __init__(self, child: Child, record_event: EventSink, step_limit_seconds: float) -> None:
        """Must be made inside a running event loop; it owns the child from here on."""
        self._child = child
        self._record_event = record_event
        self._streams: dict[str, _Stream] = {}
        # Given up here, not yet ended there: a new request of that id would get the old one's end.
        self._leaving: set[str] = set()
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count()
        # Resolved once, with the reason, when the worker is gone: by death or by close().
        self._gone: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._closing = False
        self._hang: str | None = None
        self._listener = asyncio.create_task(self._listen())
        self._watcher = asyncio.create_task(self._end_if_hung(step_limit_seconds))

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[GenerationChunk, None]:
        """As the protocol says. The request is sent when the iteration starts."""
        identity = request.request_id
        if identity in self._streams or identity in self._leaving:
            raise RequestError(f"request_id {identity!r} is running already", param=None)
        stream: _Stream = asyncio.Queue()
        self._send(Submit(request=request))
        self._streams[identity] = stream
        try:
            while True:
                match await stream.get():
                    case GenerationChunk() as chunk:
                        if chunk.finish_reason is not None:
                            self._streams.pop(identity)
                        yield chunk
                        if chunk.finish_reason is not None:
                            return
                    case SpecserveError() as error:
                        self._streams.pop(identity)
                        raise error
        finally:
            # Still there means that the consumer left early: nobody reads, so nothing may run.
            if self._streams.pop(identity, None) is not None:
                self._leaving.add(identity)
                with suppress(EngineError):  # a worker that is gone holds nothing to free
                    self._send(Abort(request_id=identity))

    async def abort(self, request_id: str) -> None:
        """Its iterator ends with "abort"; unknown and finished ids are no error."""
        if request_id in self._streams:
            self._send(Abort(request_id=request_id))

    async def stats(self) -> EngineStats:
        """Answered by the loop itself, between two steps."""
        answer = await self._call(lambda call: ReadStats(call=call), StatsRead)
        return STATS.validate_json(answer.stats_json)

    async def set_policy(self, policy: PolicyConfig) -> PolicyState:
        """Raises ConfigError if the policy needs what was not built."""
        policy_json = POLICY.dump_json(policy)
        answer = await self._call(
            lambda call: SetPolicy(call=call, policy_json=policy_json), PolicySet
        )
        return POLICY_STATE.validate_json(answer.state_json)

    async def alive(self) -> Pulse:
        """Answered at once, even in the middle of a step.

        Raises EngineError if the worker is gone.
        """
        answer = await self._call(lambda call: Ping(call=call), Pong)
        return Pulse(time=time.monotonic(), step_seconds=answer.step_seconds)

    async def wait_failed(self) -> str:
        """Return why the worker is gone, once it is."""
        return await asyncio.shield(self._gone)

    async def close(self) -> None:
        """End the worker: politely, then surely. Open iterators end with an EngineError."""
        self._closing = True
        with suppress(EngineError):  # it has ended by itself
            self._send(Shutdown())
        await self._child.exited(SHUTDOWN_SECONDS)
        await self._child.kill()
        await self._listener

    async def _call(self, make: Callable[[int], Command], kind: type[A]) -> A:
        number = next(self._numbers)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._send(make(number))
        self._calls[number] = answer
        try:
            found = await answer
        finally:
            del self._calls[number]
        if not isinstance(found, kind):
            raise EngineError(f"the worker answered {type(found).__name__} for {kind.__name__}")
        return found

    def _send(self, command: Command) -> None:
        if self._gone.done():
            raise EngineError(self._gone.result())
        self._child.send(command)

    async def _listen(self) -> None:
        """Hand out reports until there are no more, then tell everybody why."""
        try:
            reason = await self._reason_to_end()
        except Exception as error:  # noqa: BLE001 - told to every caller; the worker can't go on
            await self._child.kill()
            reason = f"the worker was stopped: {describe(error)}"
        self._watcher.cancel()
        self._gone.set_result(reason)
        for stream in self._streams.values():
            stream.put_nowait(EngineError(reason))
        for answer in self._calls.values():
            if not answer.done():
                answer.set_exception(EngineError(reason))

    async def _reason_to_end(self) -> str:
        while True:
            match await self._child.receive():
                case Fatal(message=message, traceback=traceback):
                    self._record_event("worker.fatal", {"message": message, "traceback": traceback})
                    return f"the worker broke: {message}"
                case None if self._hang is not None:
                    self._record_event(
                        "worker.hung", {"found": self._hang, "request_ids": list(self._streams)}
                    )
                    return f"the worker hangs: {self._hang}; {self._in_flight()}"
                case None if self._closing:
                    return "the engine is closed"
                case None:
                    return f"the worker process {await self._child.exited()}"
                case report:
                    self._hand_out(report)

    async def _end_if_hung(self, limit_seconds: float) -> None:
        with suppress(EngineError):  # it has ended by itself
            self._hang = await until_hung(self.alive, limit_seconds)
            await self._child.abort()

    def _in_flight(self) -> str:
        """The requests that wait for the worker."""
        named = list(itertools.islice(self._streams, _NUM_NAMED))
        more = len(self._streams) - len(named)
        listed = ", ".join(named) + (f" and {more} more" if more else "")
        return f"requests in flight: {listed or 'none'}"

    def _hand_out(self, report: Report) -> None:
        match report:
            case Chunks() | RequestRefused() | RequestFailed():
                self._to_streams(report)
            case StatsRead() | PolicySet() | PolicyRefused() | Pong():
                self._to_caller(report)
            case Happened(kind=kind, fields=fields):
                self._record_event(kind, fields)
            case PhaseReported() | Built() | BuildFailed() | Fatal():
                raise EngineError(f"{type(report).__name__} from a worker that is built")
            case _:
                assert_never(report)

    def _to_streams(self, report: AboutRequest) -> None:
        match report:
            case Chunks(chunks=chunks):
                for chunk in chunks:
                    self._put(chunk.request_id, chunk)
            case RequestRefused(request_id=identity, message=message, param=param, status=status):
                self._put(identity, RequestError(message, param=param, status=status))
            case RequestFailed(request_id=identity, message=message):
                self._put(identity, EngineError(message))
            case _:
                assert_never(report)

    def _put(self, request_id: str, item: GenerationChunk | SpecserveError) -> None:
        """Reports cross an abort on the way; then nobody waits for them any more."""
        if stream := self._streams.get(request_id):
            stream.put_nowait(item)
        elif not isinstance(item, GenerationChunk) or item.finish_reason is not None:
            self._leaving.discard(request_id)

    def _to_caller(self, answer: Answer) -> None:
        """A caller that was cancelled is no longer there."""
        waiting = self._calls.get(answer.call)
        if waiting is None or waiting.done():
            return
        if isinstance(answer, PolicyRefused):
            waiting.set_exception(ConfigError(answer.problems))
        else:
            waiting.set_result(answer)
