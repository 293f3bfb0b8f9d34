"""The one place where an exception becomes an HTTP answer, a log line and a count."""

import secrets
import time
from collections.abc import MutableMapping
from typing import Any

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from specserve.errors import EngineError, RequestError
from specserve.server.error_response import ClientGone, error_response, request_error_response
from specserve.server.metrics import Metrics, Outcome

log = structlog.get_logger()


class Boundary:
    """ASGI middleware around everything: gives each request an id, and each its outcome.

    The id is in `scope["state"]["request_id"]` and in the header `x-request-id`.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send, request_id=secrets.token_hex(12))
        scope.setdefault("state", {})["request_id"] = answer.request_id
        began = time.perf_counter()
        outcome: Outcome = "failed"  # stands if the server cancels the request
        try:
            outcome = await self._outcome(scope, receive, answer)
        finally:
            seconds = time.perf_counter() - began
            self._metrics.observe_request(scope["path"], outcome, seconds)
            # Probes and scrapes come every few seconds for ever: not at the usual level.
            write = log.debug if scope["method"] == "GET" else log.info
            write(
                "request.done",
                request_id=answer.request_id,
                method=scope["method"],
                path=scope["path"],
                status=answer.status,
                outcome=outcome,
                seconds=round(seconds, 6),
            )

    async def _outcome(self, scope: Scope, receive: Receive, answer: "_Answer") -> Outcome:
        try:
            await self._app(scope, receive, answer.send)
        except ClientGone:
            return "disconnected"
        except RequestError as error:
            if not answer.status:
                await request_error_response(error)(scope, receive, answer.send)
            return "refused"
        except EngineError as error:
            log.error("request.engine_error", request_id=answer.request_id, error=str(error))
            if not answer.status:
                await error_response(str(error), status=500)(scope, receive, answer.send)
            return "failed"
        except Exception:
            log.exception("request.internal_error", request_id=answer.request_id)
            if not answer.status:
                message = "internal error; the server's log has the details"
                await error_response(message, status=500)(scope, receive, answer.send)
            return "failed"
        return "finished" if answer.status < 400 else "refused"


class _Answer:
    """`send`, with the id added to the headers and the status remembered (0: not sent)."""

    def __init__(self, send: Send, *, request_id: str) -> None:
        self._send = send
        self.request_id = request_id
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = self._with_id(message)
        await self._send(message)

    def _with_id(self, message: MutableMapping[str, Any]) -> Message:
        header = (b"x-request-id", self.request_id.encode())
        return {**message, "headers": [*message.get("headers", ()), header]}
