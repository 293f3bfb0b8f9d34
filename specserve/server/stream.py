"""Answers that end when the client leaves: server-sent events, and whole answers."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import Any, TypeVar

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from specserve.errors import EngineError, RequestError
from specserve.server.error_response import ClientGone, error_body

T = TypeVar("T")

DONE = b"data: [DONE]\n\n"
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # asks nginx to pass events on at once
]


def event(content: object) -> bytes:
    """One server-sent event with `content` as JSON."""
    return b"data: " + msgspec.json.encode(content) + b"\n\n"


async def until_client_leaves(receive: Receive, work: Awaitable[T]) -> T:
    """What `work` returns. If the client leaves first, cancel it and raise ClientGone.

    `receive` must have delivered the whole body before.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.create_task(_disconnect(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStream(Response):
    """Sends events as they come; closes their generator whenever and however it ends.

    The status is sent with the first event, so that an error before it can still be an answer of
    its own. A later one becomes the last event, and is raised as well.
    """

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        super().__init__()
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        async with aclosing(self._events) as events:
            await until_client_leaves(receive, _send_events(events, send))


async def _send_events(events: AsyncGenerator[bytes, None], send: Send) -> None:
    started = False
    try:
        async for content in events:
            if not started:
                await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
                started = True
            await send({"type": "http.response.body", "body": content, "more_body": True})
    except Exception as error:
        if started:
            last = event(_error(error))
            await send({"type": "http.response.body", "body": last, "more_body": False})
        raise
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _error(error: Exception) -> dict[str, Any]:
    match error:
        case RequestError():
            return error_body(str(error), status=error.status, param=error.param)
        case EngineError():
            return error_body(str(error), status=500)
        case _:
            return error_body("internal error; the server's log has the details", status=500)
