"""The HTTP application: routes, and what stands before them."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import structlog
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from specserve.config.server import ServerConfig
from specserve.facts import Facts
from specserve.plan import Plan
from specserve.server.api_key import ApiKey
from specserve.server.boundary import Boundary
from specserve.server.context import Context, EventSink
from specserve.server.dashboard_routes import dashboard_routes
from specserve.server.error_response import error_body, json_response
from specserve.server.generation_routes import generation_routes
from specserve.server.health import health_routes
from specserve.server.history import RunHistory
from specserve.server.metrics import Metrics
from specserve.server.operation_routes import operation_routes
from specserve.server.policy_control import PolicyControl
from specserve.server.policy_routes import policy_routes
from specserve.server.state import ServerState
from specserve.server.watch import watch

log = structlog.get_logger()


def create_app(
    state: ServerState,
    *,
    plan: Plan,
    facts: Facts,
    config: ServerConfig,
    record_event: EventSink,
    history: RunHistory,
    probe_seconds: float = 1.5,
    watch_seconds: float = 1.0,
) -> FastAPI:
    """An application that follows `state`: it answers the probes at once, and serves once ready.

    `history` is what the dashboard shows of the past: its owner tells it of phases and events, the
    server of the counters, which are looked at every `watch_seconds`. /health is red if the worker
    does not answer within `probe_seconds`.
    """
    created = int(time.time())
    context = Context(
        state=state,
        plan=plan,
        facts=facts,
        config=config,
        metrics=Metrics(),
        history=history,
        control=PolicyControl(plan.policy, record_event, start=created),
        record_event=record_event,
        created=created,
        probe_seconds=probe_seconds,
        watch_seconds=watch_seconds,
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(watch(context))
        watching.add_done_callback(_log_failure)
        yield
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching

    # Requests are checked by our own schemas, so FastAPI's generated documents would be wrong.
    app = FastAPI(openapi_url=None, lifespan=lifespan)
    app.add_exception_handler(HTTPException, _http_exception)
    for routes in (
        health_routes,
        generation_routes,
        operation_routes,
        policy_routes,
        dashboard_routes,
    ):
        app.include_router(routes(context))
    if config.api_key is not None:
        app.add_middleware(ApiKey, key=config.api_key)
    app.add_middleware(Boundary, metrics=context.metrics)  # added last, so outermost
    return app


def _log_failure(watching: asyncio.Task[None]) -> None:
    """At once, since the error itself is raised when the server stops, perhaps days later."""
    if not watching.cancelled() and (error := watching.exception()) is not None:
        log.error("watch.failed", exc_info=error)


async def _http_exception(request: Request, error: Exception) -> Response:
    """Unknown paths and methods, in OpenAI's shape."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    detail = error.detail if isinstance(error, HTTPException) else str(error)
    body = error_body(f"{request.method} {request.url.path}: {detail}", status=status)
    body["error"]["code"] = None  # the path is unknown, not a model
    return json_response(body, status, headers)
