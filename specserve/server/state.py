"""Where the server is in its life: starting → ready → draining, or failed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from specserve.engine import Engine
from specserve.errors import RequestError
from specserve.server.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What requests are served with. `probe` returns once the worker itself has answered.

    It is apart from `engine.stats` because a worker may answer it during a long prefill.
    """

    engine: Engine
    tokenizer: Tokenizer
    probe: Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Starting:
    """The worker is being built; `phase` is the one that runs."""

    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The self test has passed."""

    serving: Serving


@dataclass(frozen=True, slots=True, kw_only=True)
class Draining:
    """Requests that run may finish, new ones are refused."""

    serving: Serving | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The build failed or the worker is gone. Final."""

    reason: str


Lifecycle = Starting | Ready | Draining | Failed


class ServerState:
    """The one owner of the lifecycle, and the count of requests in flight.

    Whoever builds the worker moves it on; the routes only read it.
    """

    def __init__(self, *, phase: str) -> None:
        self._lifecycle: Lifecycle = Starting(phase=phase)
        self._num_in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def lifecycle(self) -> Lifecycle:
        """The state now; a frozen value."""
        return self._lifecycle

    def start_phase(self, phase: str) -> None:
        """Name the build phase that runs. Without effect unless starting."""
        if isinstance(self._lifecycle, Starting):
            self._lifecycle = Starting(phase=phase)

    def ready(self, serving: Serving) -> None:
        """Serve from now on. Without effect unless starting: a drain or failure stands."""
        if isinstance(self._lifecycle, Starting):
            self._lifecycle = Ready(serving=serving)

    def drain(self) -> None:
        """Refuse new requests from now on."""
        match self._lifecycle:
            case Starting():
                self._lifecycle = Draining(serving=None)
            case Ready(serving=serving):
                self._lifecycle = Draining(serving=serving)
            case Draining() | Failed():
                pass

    def fail(self, reason: str) -> None:
        """Refuse everything from now on. The first reason stands."""
        if not isinstance(self._lifecycle, Failed):
            self._lifecycle = Failed(reason=reason)

    def serving(self) -> Serving:
        """What to serve a new request with. Raises RequestError (503) with the reason if none."""
        match self._lifecycle:
            case Ready(serving=serving):
                return serving
            case Starting(phase=phase):
                message = f"the server is starting (phase {phase})"
            case Draining():
                message = "the server is shutting down; it finishes what runs and takes no more"
            case Failed(reason=reason):
                message = f"the server has failed: {reason}"
        raise RequestError(message, param=None, status=503)

    @contextmanager
    def admit(self) -> Iterator[Serving]:
        """`serving`, with the request counted as in flight until the block ends."""
        serving = self.serving()
        self._num_in_flight += 1
        self._idle.clear()
        try:
            yield serving
        finally:
            self._num_in_flight -= 1
            if not self._num_in_flight:
                self._idle.set()

    async def idle(self) -> None:
        """Return once no request is in flight."""
        await self._idle.wait()
