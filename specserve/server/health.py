"""GET /health (is the worker alive?) and /ready (may requests come?)."""

import asyncio

from fastapi import APIRouter, Response

from specserve.errors import EngineError
from specserve.server.context import Context
from specserve.server.error_response import json_response
from specserve.server.state import Draining, Failed, Lifecycle, Ready, Serving, Starting


def health_routes(context: Context) -> APIRouter:
    """The two probes."""
    router = APIRouter()

    @router.get("/health")
    async def health() -> Response:
        return await _health(context.state.lifecycle, context.probe_seconds)

    @router.get("/ready")
    async def ready() -> Response:
        return await _readiness(context.state.lifecycle, context.probe_seconds)

    return router


async def _health(lifecycle: Lifecycle, seconds: float) -> Response:
    """A server that starts or drains is alive."""
    match lifecycle:
        case Starting(phase=phase):
            return json_response({"status": "starting", "phase": phase})
        case Ready(serving=serving):
            return await _probed(serving, seconds, "ready")
        case Draining(serving=Serving() as serving):
            return await _probed(serving, seconds, "draining")
        case Draining():  # told to stop while it was starting
            return json_response({"status": "draining"})
        case Failed(reason=reason):
            return _unhealthy(reason)


async def _readiness(lifecycle: Lifecycle, seconds: float) -> Response:
    match lifecycle:
        case Starting(phase=phase):
            return json_response({"status": "starting", "phase": phase}, 503)
        case Ready(serving=serving):
            return await _probed(serving, seconds, "ready")
        case Draining():
            return json_response({"status": "draining"}, 503)
        case Failed(reason=reason):
            return _unhealthy(reason)


async def _probed(serving: Serving, seconds: float, status: str) -> Response:
    """`status`, if the worker itself answers in time."""
    try:
        async with asyncio.timeout(seconds):
            await serving.probe()
    except TimeoutError:
        return _unhealthy(f"the worker did not answer within {seconds} s")
    except EngineError as error:
        return _unhealthy(str(error))
    return json_response({"status": status})


def _unhealthy(reason: str) -> Response:
    return json_response({"status": "failed", "reason": reason}, 503)
