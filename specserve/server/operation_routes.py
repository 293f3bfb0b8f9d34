"""GET /v1/models, /metrics and /server_info."""

import asyncio
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric

import specserve
from specserve.engine import EngineStats
from specserve.errors import EngineError, RequestError
from specserve.server.context import Context
from specserve.server.engine_metrics import control_metrics, engine_metrics, lifecycle_metrics
from specserve.server.error_response import json_response
from specserve.server.policy_view import state_fields
from specserve.server.state import Draining, Ready, Serving

STATS_SECONDS = 2.0
_BULKY = {"tensors", "d2t", "t2d"}  # megabytes that the checkpoint's own files hold as well


def operation_routes(context: Context) -> APIRouter:
    """What clients and operators look at."""
    router = APIRouter()

    @router.get("/v1/models")
    async def models() -> Response:
        context.state.serving()  # clients take a listed model for a served one
        return json_response({"object": "list", "data": [_model_card(context)]})

    @router.get("/v1/models/{name:path}")
    async def model(name: str) -> Response:
        context.state.serving()
        if name != context.plan.target.name:
            message = f"model: {name!r} is not served here, {context.plan.target.name!r} is"
            raise RequestError(message, param="model", status=404)
        return json_response(_model_card(context))

    @router.get("/metrics")
    async def metrics() -> Response:
        stats = await _stats(context)
        found: list[Metric] = [
            *lifecycle_metrics(status(context), worker_up=stats is not None),
            *control_metrics(context.control.pinned),
            *(engine_metrics(stats) if stats else ()),
        ]
        return Response(context.metrics.render(found), media_type=CONTENT_TYPE_LATEST)

    @router.get("/server_info")
    async def server_info() -> Response:
        return json_response(server_info_fields(context, await _stats(context)))

    return router


def server_info_fields(context: Context, stats: EngineStats | None) -> dict[str, Any]:
    """Plan, facts and totals. The API key is not told, only whether there is one."""
    key = None if context.config.api_key is None else "***"
    return {
        "version": specserve.__version__,
        "versions": context.facts.versions,
        "status": status(context),
        "plan": context.plan.model_dump(mode="json"),
        "adjustments": [each.model_dump(mode="json") for each in context.plan.adjustments],
        "warnings": [warning.text for warning in context.plan.warnings],
        "facts": context.facts.model_dump(mode="json", exclude={"target": _BULKY, "draft": _BULKY}),
        "server": {**context.config.model_dump(mode="json"), "api_key": key},
        "stats": None if stats is None else stats_fields(stats),
    }


def stats_fields(stats: EngineStats) -> dict[str, Any]:
    """Raw counters with the figures derived from them."""
    return {
        **{name: value for name, value in asdict(stats).items() if name != "policy"},
        "acceptance_length": stats.acceptance_length,
        "acceptance_rate": stats.acceptance_rate,
        "policy": state_fields(stats.policy),
    }


def _model_card(context: Context) -> dict[str, Any]:
    return {
        "id": context.plan.target.name,
        "object": "model",
        "created": context.created,
        "owned_by": "specserve",
        "max_model_len": context.plan.target.context_length,
    }


def status(context: Context) -> str:
    """starting, ready, draining or failed."""
    return type(context.state.lifecycle).__name__.lower()


async def _stats(context: Context) -> EngineStats | None:
    """Fresh totals; None while there is no worker, or none that answers."""
    match context.state.lifecycle:
        case Ready(serving=serving) | Draining(serving=Serving() as serving):
            try:
                async with asyncio.timeout(STATS_SECONDS):
                    return await serving.engine.stats()
            except (TimeoutError, EngineError):
                return None  # told as specserve_worker_up 0, and by /health
        case _:
            return None
