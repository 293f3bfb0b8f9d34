"""Serve the application on a socket that is bound already."""

import asyncio
import math
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp


class _Server(uvicorn.Server):
    """Leaves signals to whoever supervises the worker: SIGTERM means drain first, then stop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def run_server(
    app: ASGIApp, listener: socket.socket, *, stop: asyncio.Event, grace_seconds: float
) -> None:
    """Serve until `stop` is set; answers under way get `grace_seconds` before they are cut off.

    Closes `listener`.
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",  # starting and stopping is told by who does it
        access_log=False,  # the boundary logs each request, with its outcome
        server_header=False,
        timeout_graceful_shutdown=max(1, math.ceil(grace_seconds)),
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await serving
    finally:
        stopping.cancel()
